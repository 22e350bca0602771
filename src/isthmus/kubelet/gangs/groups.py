"""Membership of pods in PodGroups, by either of two APIs; pure.

Kubernetes' own (scheduling.k8s.io, a pod's `spec.schedulingGroup`), and that of scheduler-plugins, which operators
use for their jobs (scheduling.x-k8s.io, a label of the pod). Both name a PodGroup in the pod's namespace with the
minimum number of pods.
"""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.model.pod_inputs import Object

LABEL = "scheduling.x-k8s.io/pod-group"
_PLUGINS, _OWN = "apis/scheduling.x-k8s.io/v1alpha1", "apis/scheduling.k8s.io/v1alpha2"


@dataclass(frozen=True, slots=True)
class Group:
    """The name of a PodGroup.

    Attributes:
        api: where the API server has it, without the namespace.
        namespace: of its pods, too.
        name: its own.
    """

    api: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/{self.api}/namespaces/{self.namespace}/podgroups/{self.name}"

    def __str__(self) -> str:
        """Return what its user calls it."""
        return f"PodGroup {self.name}"


def of(pod: Object) -> Group | None:
    """Return the group of a pod; None for a pod that starts by itself."""
    meta = pod["metadata"]
    namespace = str(meta.get("namespace") or "default")
    if name := (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"):
        return Group(_OWN, namespace, str(name))
    name = (meta.get("labels") or {}).get(LABEL)
    return Group(_PLUGINS, namespace, str(name)) if name else None


def least(group: Object) -> int:
    """Return how many pods of a PodGroup start together; 1 where its pods need not wait for one another."""
    spec = group.get("spec") or {}
    if "schedulingPolicy" in spec:
        return int(((spec["schedulingPolicy"] or {}).get("gang") or {}).get("minCount") or 1)
    return int(spec.get("minMember") or 1)
