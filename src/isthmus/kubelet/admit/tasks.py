"""What a pod of several tasks may not ask for: srun starts Apptainer for each, as the user, on each node.

What a task has is what an unprivileged program has: the user's own id and groups, no capability, no way to get more
rights, a root that cannot be written. A pod that asks for that or less has it; one that asks for something else would
look confined in a way in which it is not, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import identity
from isthmus.kubelet.translate.volumes import claim_of
from isthmus.model.pod_inputs import Object

_NUMBERS = ("runAsUser", "runAsGroup")
_GROUPS = ("supplementalGroups", "fsGroup")


def problems(pod: Object) -> Iterator[str]:
    """Give what is wrong with a pod of several tasks."""
    annotation = (pod["metadata"].get("annotations") or {}).get(flags.MPI_HOME)
    if annotation not in (None, "true", "false"):
        yield f"annotation {flags.MPI_HOME} is {annotation!r}; write 'true' or 'false'"
    if flags.mpi(pod) is None:
        return
    if len(pod["spec"]["containers"]) > 1:
        yield "a pod of several tasks has one container; move the others to pods of their own"
    for container in pod["spec"]["containers"]:
        for what, why in (*_identity(pod, container), *_mounts(pod, container)):
            yield f"container {container['name']}: {what} is not offered with several tasks: {why}"


def _identity(pod: Object, container: Object) -> Iterator[tuple[str, str]]:
    context = identity.security(pod, container)
    for name in (*(name for name in _NUMBERS if context.get(name) is not None), *filter(context.get, _GROUPS)):
        yield f"securityContext.{name}", "each has the user's own id and groups, as in any Slurm job; remove it"
    more = identity.capability_names((context.get("capabilities") or {}).get("add"))
    if more:
        yield f"capabilities.add {', '.join(more)}", "a task has no capabilities; remove it"
    if identity.is_privileged(container):
        yield "securityContext.privileged", "a task has no capabilities; remove it"
    if identity.seccomp(pod, container, "") is not None:
        why = "Apptainer, which begins each task, can only answer EPERM, which breaks threads"
        yield "securityContext.seccompProfile", f"{why}; set its type to Unconfined for this container"


def _mounts(pod: Object, container: Object) -> Iterator[tuple[str, str]]:
    # Of the other volumes tasks see nothing.
    seen = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if volume.get("hostPath") or claim_of(pod, volume)
    }
    for mount in container.get("volumeMounts") or ():
        part = mount.get("subPath") or mount.get("subPathExpr")
        if part and mount["name"] in seen:
            why = "another pod could put a link in its place; mount the whole volume, or a hostPath of that folder"
            yield f"subPath {part} of volume {mount['name']}", why
