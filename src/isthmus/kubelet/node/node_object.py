"""Builds the node object: one Kubernetes node that represents everything of Slurm that the user may use.

Capacity is the sum of the user's partitions; allocatable is the working part of it, within the user's limits.
The node stays Ready while Slurm does not answer: pods of a NotReady node are evicted, although they run on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from isthmus.kubelet.admit.runtime_classes import HANDLER
from isthmus.kubelet.slurm.placing import HOSTNAME
from isthmus.kubelet.status.containers import write_time
from isthmus.model.pod_inputs import Object, PodSettings
from isthmus.model.slurm.cluster import Limit, SlurmCluster, SlurmNode

FEATURE = "feature.slurm"
DRAINED = "slurm/drained"
LEASE_S = 40
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
# Makes the API server use WebSockets instead of SPDY for exec and attach.
_DECLARED = ("ExtendWebSocketsToKubelet",)
_UNUSABLE = frozenset(
    {"DOWN", "DRAIN", "DRAINED", "DRAINING", "ERROR", "FAIL", "FAILING", "FUTURE", "INVAL", "MAINT", "NOT_RESPONDING"}
)


@dataclass(frozen=True, slots=True)
class Host:
    """Where the kubelet runs.

    Attributes:
        address: where the API server reaches it.
        port: of its server.
        kubelet: version, `v1.36.3`.
        runtime: `apptainer://1.4.2`.
        architecture: as images name it, e.g. amd64.
        kernel: release.
        os_image: e.g. `Debian GNU/Linux 13`.
        machine_id: of the host.
        boot_id: of the host.
        max_pods: the number of pods this kubelet is tested with.
    """

    address: str
    port: int
    kubelet: str
    runtime: str
    architecture: str
    kernel: str
    os_image: str
    machine_id: str = ""
    boot_id: str = ""
    max_pods: int = 500


def settings_with(
    settings: PodSettings, slurm: SlurmCluster, host: Host, known: Mapping[str, str] | None = None
) -> PodSettings:
    """Return the settings with Slurm's nodes and features and the node's labels.

    Args:
        settings: of the cluster.
        slurm: what it offers.
        host: where the kubelet runs.
        known: labels of the Node, the user's among them; one of a feature counts only while Slurm has the feature.
    """
    given = {key: value for key, value in (known or {}).items() if not key.startswith(f"{FEATURE}/")}
    reachable = _of_partitions(slurm)
    return replace(
        settings,
        features=frozenset(word for node in reachable for word in node.features),
        slurm_nodes=frozenset(node.name for node in reachable),
        qos=slurm.qos,
        labels={**settings.labels, **given, **labels(settings, slurm, host)},
    )


def labels(settings: PodSettings, slurm: SlurmCluster, host: Host) -> dict[str, str]:
    """Return the node's labels, one for each Slurm feature that is a valid label."""
    words = sorted({word for node in _of_partitions(slurm) for word in node.features if _LABEL.fullmatch(word)})
    own = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": host.architecture,
        HOSTNAME: settings.node,
        "type": "slurm",
    }
    return {**own, **{f"{FEATURE}/{word}": "true" for word in words}}


def node_object(settings: PodSettings, slurm: SlurmCluster, host: Host, old: Object | None, now: datetime) -> Object:
    """Return the Node.

    Args:
        settings: of the cluster.
        slurm: what it offers.
        host: where the kubelet runs.
        old: the Node written last, whose times are kept; None for the first.
        now: with a time zone.
    """
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.node, "labels": labels(settings, slurm, host)},
        "spec": {"taints": taints(slurm)} if taints(slurm) else {},
        "status": node_status(settings, slurm, host, old, now),
    }


def node_status(
    settings: PodSettings, slurm: SlurmCluster | None, host: Host, old: Object | None, now: datetime
) -> dict[str, Any]:
    """Return v1.NodeStatus; `slurm` is None when Slurm does not answer, and its part stays as it was."""
    before = (old or {}).get("status") or {}
    kept = {key: before[key] for key in ("capacity", "allocatable") if key in before}
    sizes = kept if slurm is None else _sizes(settings, slurm, host)
    return {
        **sizes,
        "conditions": _conditions(slurm, before.get("conditions") or (), now),
        "addresses": [
            {"type": "InternalIP", "address": host.address},
            {"type": "Hostname", "address": settings.node},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": host.port}},
        "declaredFeatures": list(_DECLARED),
        "nodeInfo": _info(host),
        "runtimeHandlers": [{"name": name} for name in ("", HANDLER)],
    }


def taints(slurm: SlurmCluster) -> list[dict[str, str]]:
    """Return the taints: one if no node accepts jobs."""
    return [] if _usable(slurm) else [{"key": DRAINED, "value": "true", "effect": "NoSchedule"}]


def lease(settings: PodSettings, old: Object | None, now: datetime) -> dict[str, Any]:
    """Return the node's Lease, renewed; `old` is the one written last."""
    renewed = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": settings.node, "leaseDurationSeconds": LEASE_S, "renewTime": renewed}
    if old:
        return {**old, "spec": {**(old.get("spec") or {}), **spec}}
    meta = {"name": settings.node, "namespace": "kube-node-lease"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def _of_partitions(slurm: SlurmCluster) -> list[SlurmNode]:
    names = {name for partition in slurm.partitions for name in partition.nodes}
    return [node for node in slurm.nodes if node.name in names]


def _usable(slurm: SlurmCluster) -> list[SlurmNode]:
    open_ = {name for partition in slurm.partitions if partition.state == "UP" for name in partition.nodes}
    # `IDLE*` is a node that does not respond.
    return [
        node
        for node in slurm.nodes
        if node.name in open_ and not node.state.endswith("*") and not _UNUSABLE & {*node.state.upper().split("+")}
    ]


def _sizes(settings: PodSettings, slurm: SlurmCluster, host: Host) -> dict[str, dict[str, str]]:
    capacity = _sum(_of_partitions(slurm), settings)
    usable = _sum(_usable(slurm), settings)
    limits = [_limit(one, settings) for one in slurm.limits]
    least = {name: min([count, *(one[name] for one in limits if name in one)]) for name, count in usable.items()}
    jobs = min([host.max_pods, *(one.jobs for one in slurm.limits if one.jobs is not None)])
    return {
        "capacity": {**_quantities(capacity), "pods": str(host.max_pods)},
        "allocatable": {**_quantities(least), "pods": str(jobs)},
    }


def _sum(nodes: list[SlurmNode], settings: PodSettings) -> dict[str, int]:
    found = {"cpu": sum(node.cpus for node in nodes), "memory": sum(node.memory_mib for node in nodes)}
    for resource, gres in settings.gres.items():
        found[resource] = sum(_count(node.gres, gres) for node in nodes)
    return found


def _limit(limit: Limit, settings: PodSettings) -> dict[str, int]:
    found = {"cpu": limit.cpus, "memory": limit.memory_mib}
    for resource, gres in settings.gres.items():
        found[resource] = limit.gres.get(gres)
    return {name: count for name, count in found.items() if count is not None}


def _count(held: Mapping[str, int], gres: str) -> int:
    """Count GRES of a name, of all its types where no type is named."""
    return sum(count for name, count in held.items() if name == gres or name.startswith(f"{gres}:"))


def _quantities(counts: Mapping[str, int]) -> dict[str, str]:
    """Return counts as quantities, without devices that no node has."""
    return {
        name: f"{count}Mi" if name == "memory" else str(count)
        for name, count in counts.items()
        if count or name in ("cpu", "memory")
    }


def _conditions(slurm: SlurmCluster | None, old: Any, now: datetime) -> list[dict[str, str]]:
    answers = "SlurmAnswers" if slurm else "SlurmDoesNotAnswer"
    states = [
        ("Ready", True, "KubeletReady", "kubelet is posting ready status"),
        ("MemoryPressure", False, "KubeletHasSufficientMemory", "Slurm gives each pod its own memory"),
        ("DiskPressure", False, "KubeletHasNoDiskPressure", "disks belong to Slurm's nodes"),
        ("PIDPressure", False, "KubeletHasSufficientPID", "processes belong to Slurm's nodes"),
        ("SlurmReachable", slurm is not None, answers, "squeue and scontrol are asked once a round"),
    ]
    known = {one["type"]: one for one in old}
    found = []
    for kind, true, reason, message in states:
        status = "True" if true else "False"
        before = known.get(kind, {})
        since = before["lastTransitionTime"] if before.get("status") == status else write_time(now)
        words = {"type": kind, "status": status, "reason": reason, "message": message}
        found.append({**words, "lastHeartbeatTime": write_time(now), "lastTransitionTime": since})
    return found


def _info(host: Host) -> dict[str, str]:
    return {
        "architecture": host.architecture,
        "bootID": host.boot_id,
        "containerRuntimeVersion": host.runtime,
        "kernelVersion": host.kernel,
        "kubeProxyVersion": "",
        "kubeletVersion": host.kubelet,
        "machineID": host.machine_id,
        "operatingSystem": "linux",
        "osImage": host.os_image,
        "systemUUID": host.machine_id,
    }
