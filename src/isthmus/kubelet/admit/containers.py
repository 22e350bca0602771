"""Admission of containers: unsupported or invalid fields, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from isthmus.kubelet.admit import fields
from isthmus.kubelet.translate import actions, downward, identity
from isthmus.kubelet.translate.resources import is_sidecar
from isthmus.kubelet.volumes import registry as volumes
from isthmus.model.pod_inputs import Object, PodSettings

_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_HOOKS = ("postStart", "preStop")
# Accepted values; only root can load AppArmor profiles.
_APPARMOR = ("RuntimeDefault", "Unconfined")


def problems(pod: Object, settings: PodSettings) -> Iterator[str]:
    """Yield the problems of a pod's containers."""
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        for problem in _container(pod, container, settings):
            yield f"container {container['name']}: {problem}"


def ephemeral(pod: Object, name: str, settings: PodSettings) -> list[str]:
    """Return the problems of an ephemeral container."""
    found = (one for one in pod["spec"].get("ephemeralContainers") or () if one["name"] == name)
    return [
        f"container {name}: {problem}"
        for one in found
        for problem in (*fields.of_container(one), *_container(pod, one, settings))
    ]


def _container(pod: Object, container: Object, settings: PodSettings) -> Iterator[str]:
    yield from _identity(pod, container, settings)
    yield from _mounts(pod, container)
    yield from _ports(pod, container)
    yield from _actions(container)
    for entry in container.get("env") or ():
        path = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if path is not None and not downward.is_field(path):
            yield f"field {path} cannot be asked for; see the downward API of Kubernetes"
    if not container.get("image"):
        yield "it names no image; set image"
    if container.get("volumeDevices"):
        yield "volumeDevices is not offered: there are no block volumes; mount the volume's files"
    init = container in (pod["spec"].get("initContainers") or ())
    if container.get("restartPolicyRules") or (container.get("restartPolicy") and not (init and is_sidecar(container))):
        yield "a restart policy of its own is for sidecars only; set restartPolicy of the pod"
    if (container.get("lifecycle") or {}).get("stopSignal"):
        yield "lifecycle.stopSignal is not offered: containers get SIGTERM; use a preStop hook"


def _identity(pod: Object, container: Object, settings: PodSettings) -> Iterator[str]:
    context = identity.security(pod, container)
    own = container.get("securityContext") or {}
    more = set(identity.capability_names((own.get("capabilities") or {}).get("add"))) - identity.CAPABILITIES
    if more:
        remedy = "remove them, or set privileged for all that the pod's own user namespace has"
        yield f"capabilities {', '.join(sorted(more))} are not offered: nobody has them on the node; {remedy}"
    if own.get("windowsOptions"):
        yield "windowsOptions is not offered: nodes run Linux; remove it"
    kind = (context.get("appArmorProfile") or {}).get("type", "Unconfined")
    if kind not in _APPARMOR:
        yield f"appArmorProfile {kind} is not offered: profiles are loaded by root only; use RuntimeDefault"
    if own.get("procMount", "Default") != "Default":
        yield f"procMount {own['procMount']} is not offered: /proc belongs to the node; remove it"
    yield from _numbers(pod, context, settings)


def _numbers(pod: Object, context: Object, settings: PodSettings) -> Iterator[str]:
    asked = [(name, context.get(name)) for name in ("runAsUser", "runAsGroup")]
    whole = pod["spec"].get("securityContext") or {}
    asked.append(("fsGroup", whole.get("fsGroup")))
    asked += [("supplementalGroups", number) for number in whole.get("supplementalGroups") or ()]
    for name, number in asked:
        if number is not None and number >= settings.ids:
            yield f"{name} {number} is none of your subordinate ids; use a number below {settings.ids}"


def _mounts(pod: Object, container: Object) -> Iterator[str]:
    impossible = volumes.no_propagation(pod)
    mounts = container.get("volumeMounts") or ()
    for mount in mounts:
        where = f"volume mount {mount['mountPath']}"
        wanted = mount.get("mountPropagation") or "None"
        if wanted != "None" and mount["name"] in impossible:
            yield f"{where}: mountPropagation {wanted} {impossible[mount['name']]}"
        if wanted != "None":
            yield from (
                f"{where}: {each} lies in it and would be hidden by its mountPropagation; mount it elsewhere"
                for each in _below(mount["mountPath"], mounts)
            )
        if mount.get("recursiveReadOnly") == "Enabled":
            yield f"{where}: recursiveReadOnly is not offered: only the volume itself is read-only; use IfPossible"


def _below(path: str, mounts: Iterable[Object]) -> Iterator[str]:
    above = PurePosixPath(path)
    return (one["mountPath"] for one in mounts if above in PurePosixPath(one["mountPath"]).parents)


def _ports(pod: Object, container: Object) -> Iterator[str]:
    for port in container.get("ports") or ():
        if port.get("hostPort") and not pod["spec"].get("hostNetwork"):
            yield f"hostPort {port['hostPort']} is not offered: ports belong to the node; use a Service or hostNetwork"


def _actions(container: Object) -> Iterator[str]:
    hooks = container.get("lifecycle") or {}
    handlers = [(kind, container.get(kind)) for kind in _PROBES] + [(kind, hooks.get(kind)) for kind in _HOOKS]
    for kind, text in handlers:
        found = actions.action(container, text) if text else None
        if text and found is None:
            yield f"{kind} says nothing; give it exec, httpGet, tcpSocket or grpc"
        elif found and found.kind in ("http", "tcp") and found.port is None:
            yield f"{kind} names a port that the container does not have; correct it, or list it in ports"
