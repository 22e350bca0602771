"""Admission of pods: each refusal has a reason and a remedy.

A pod that could not behave as specified fails before a job is submitted. Fields that only a scheduler reads
(affinity between pods, spreading, tolerations) are accepted: Slurm places the job, and `ignored` reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from isthmus.kubelet.admit import (
    containers as refusals_containers,
)
from isthmus.kubelet.admit import (
    fields,
)
from isthmus.kubelet.admit import (
    tasks as refusals_tasks,
)
from isthmus.kubelet.slurm import annotations as notes
from isthmus.kubelet.slurm import flags
from isthmus.kubelet.slurm.placing import place
from isthmus.kubelet.translate import identity
from isthmus.kubelet.translate.names import HOSTNAME_MAX, hostname
from isthmus.kubelet.translate.resources import extended, unbounded_cpus
from isthmus.kubelet.volumes import registry
from isthmus.model.pod_inputs import Object, PodSettings

_NODE = "it belongs to the node, which pods share with Slurm's other jobs"
# Field of the spec -> accepted values, and why others are refused.
SPEC: dict[str, tuple[Callable[[Any], bool], str]] = {
    "hostPID": (lambda value: not value, f"{_NODE}; use shareProcessNamespace"),
    "hostIPC": (lambda value: not value, f"{_NODE}; containers of one pod share theirs"),
    "resourceClaims": (lambda value: not value, "devices come from Slurm; ask for them in resources.limits"),
    "os": (lambda value: (value or {}).get("name", "linux") == "linux", "nodes run Linux; remove it"),
}
CONTEXT: dict[str, tuple[Callable[[Any], bool], str]] = {
    "windowsOptions": (lambda value: not value, "nodes run Linux; remove it"),
    "sysctls": (lambda value: not value, "only root sets a pod network's sysctls; remove it"),
}
IGNORED = {
    "podAffinity": "podAffinity is ignored: Slurm places pods; use nodeSelector or --nodelist",
    "podAntiAffinity": "podAntiAffinity is ignored: Slurm places pods; use --exclusive or --exclude",
}


def problems(pod: Object, settings: PodSettings, volumes: Iterable[Object] = ()) -> list[str]:
    """Return why a pod can never run here; empty if it can.

    Args:
        pod: the pod.
        settings: of the cluster.
        volumes: PersistentVolumes of its claims.
    """
    spec = pod["spec"]
    return [
        *fields.unknown(pod),
        *_fields(spec, SPEC, "spec"),
        *_fields(spec.get("securityContext") or {}, CONTEXT, "spec.securityContext"),
        *_names(pod, settings),
        *_resources(pod, settings),
        *refusals_containers.problems(pod, settings),
        *_volumes(pod),
        *flags.owner(pod),
        *flags.sbatch(pod).problems,
        *flags.srun(pod).problems,
        *refusals_tasks.problems(pod),
        *place(pod, settings, volumes).problems,
    ]


def ignored(pod: Object) -> list[str]:
    """Return the fields of a pod that have no effect here, for an event."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    found = [*notes.unknown(pod), *refusals_tasks.ignored(pod)]
    found += [text for kind, text in IGNORED.items() if (affinity.get(kind) or {}).get(needed)]
    if spec.get("topologySpreadConstraints"):
        found.append("topologySpreadConstraints is ignored: Slurm places pods; use --spread-job or --exclude")
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    if any((one.get("securityContext") or {}).get("seLinuxOptions") for one in (spec, *containers)):
        found.append("seLinuxOptions is ignored: nodes label no containers, as hosts without SELinux do not")
    if any(map(identity.is_privileged, containers)):
        found.append("privileged gives all capabilities in the pod's own user namespace, and none on the node")
    if names := unbounded_cpus(spec):
        found.append(
            f"limits.cpu of {', '.join(names)} bounds nothing: the job has whole CPUs, which its containers share"
        )
    return found


def _fields(holder: Object, table: dict[str, tuple[Callable[[Any], bool], str]], place: str) -> Iterator[str]:
    for name, (well, why) in table.items():
        if not well(holder.get(name)):
            yield f"{place}.{name} is not offered: {why}"


def _volumes(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        for problem in registry.problems(volume):
            yield f"volume {volume['name']}: {problem}"


def _names(pod: Object, settings: PodSettings) -> Iterator[str]:
    name = hostname(pod, settings)
    if len(name) > HOSTNAME_MAX:
        yield f"host name {name!r} is longer than {HOSTNAME_MAX}; shorten it, or unset setHostnameAsFQDN"
    if pod["spec"].get("dnsPolicy") == "None" and not (pod["spec"].get("dnsConfig") or {}).get("nameservers"):
        yield "dnsPolicy None has no nameservers; name one in dnsConfig"


def _resources(pod: Object, settings: PodSettings) -> Iterator[str]:
    known = ", ".join(sorted(settings.gres)) or "none"
    for name in sorted(extended(pod) - set(settings.gres)):
        if name.startswith("hugepages-"):
            yield f"resource {name} is not offered: Slurm gives no huge pages; remove it"
        else:
            yield f"resource {name} is not one of this cluster's: {known}; correct the name"
