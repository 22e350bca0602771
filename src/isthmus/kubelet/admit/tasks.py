"""Admission of pods with several tasks: srun starts Apptainer for each task, as the user, on each node.

A task has what an unprivileged process has: the user's id and groups, no capability, no privilege escalation, and a
read-only root. A pod that asks for that or less is accepted; one that asks for a different confinement would only
appear to have it, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.translate import identity
from isthmus.kubelet.volumes import registry as volumes
from isthmus.model.pod_inputs import Object

_NUMBERS = ("runAsUser", "runAsGroup")
# Mounted into every pod by default; few tasks use it.
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 -- the folder, no token
_GROUPS = ("supplementalGroups", "fsGroup")


def problems(pod: Object) -> Iterator[str]:
    """Yield the problems of a pod with a container of several tasks."""
    yield from notes.problems(pod)
    if (name := flags.mpi_container(pod)) is None:
        return
    containers = [one for one in pod["spec"]["containers"] if one["name"] == name]
    if not containers:
        names = ", ".join(one["name"] for one in pod["spec"]["containers"])
        which = notes.name_used(pod, notes.MPI_CONTAINER)
        yield f"no container is called {name!r}, which would run as several tasks; name one in {which}: {names}"
    for container in containers:
        for what, why in (*_identity(pod, container), *_mounts(pod, container)):
            yield f"container {container['name']}: {what} is not offered with several tasks: {why}"


def ignored(pod: Object) -> Iterator[str]:
    """Yield what tasks on other nodes do not see, for an event."""
    name = flags.mpi_container(pod)
    if name is None or flags.sbatch(pod).options.get("nodes") == "1":
        return
    here = volumes.of_first_node(pod)
    for container in pod["spec"]["containers"]:
        mounts = container.get("volumeMounts") or () if container["name"] == name else ()
        found = sorted({mount["name"] for mount in mounts if mount["mountPath"] != _TOKEN} & here)
        if found:
            where = "is on the job's first node alone: tasks of others do not see it"
            yield f"volume {', '.join(found)} of container {name} {where}; use a hostPath, a claim or an image"


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
    # Other volumes exist on the pod's first node only.
    seen = volumes.node_paths(pod)
    for mount in container.get("volumeMounts") or ():
        if (mount.get("mountPropagation") or "None") != "None":
            yield (
                f"mountPropagation of volume {mount['name']}",
                "what is mounted on one node reaches no other; remove it",
            )
        part = mount.get("subPath") or mount.get("subPathExpr")
        if part and mount["name"] in seen:
            why = "another pod could put a link in its place; mount the whole volume, or a hostPath of that folder"
            yield f"subPath {part} of volume {mount['name']}", why
