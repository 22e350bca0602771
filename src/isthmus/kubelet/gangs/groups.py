"""Membership of pods in PodGroups, by either of two APIs; pure.

Kubernetes' own (scheduling.k8s.io, a pod's `spec.schedulingGroup`), and that of scheduler-plugins, which operators
use for their jobs (scheduling.x-k8s.io, a label of the pod). Both name a PodGroup in the pod's namespace with the
minimum number of pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isthmus.model.pod_inputs import Object

LABEL = "scheduling.x-k8s.io/pod-group"
PLUGINS, OWN = "scheduling.x-k8s.io", "scheduling.k8s.io"
RESOURCE = "podgroups"
# Versions that `least` can read, newest first. Kubernetes 1.36 has v1alpha2, and 1.37 has the two before it.
VERSIONS = {OWN: ("v1beta1", "v1alpha3", "v1alpha2"), PLUGINS: ("v1alpha1",)}


@dataclass(frozen=True, slots=True)
class Group:
    """The name of a PodGroup.

    Attributes:
        api: its API group.
        namespace: of its pods, too.
        name: its own.
    """

    api: str
    namespace: str
    name: str

    def path(self, version: str) -> str:
        """Return where the API server has it in a version of its API group."""
        return f"/apis/{self.api}/{version}/namespaces/{self.namespace}/{RESOURCE}/{self.name}"

    def __str__(self) -> str:
        """Return what its user calls it."""
        return f"PodGroup {self.name}"


def of(pod: Object) -> Group | None:
    """Return the group of a pod; None for a pod that starts by itself."""
    meta = pod["metadata"]
    namespace = str(meta.get("namespace") or "default")
    if name := (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"):
        return Group(OWN, namespace, str(name))
    name = (meta.get("labels") or {}).get(LABEL)
    return Group(PLUGINS, namespace, str(name)) if name else None


def known(api: str, served: Iterable[str]) -> list[str]:
    """Return the versions that can be read among those that an API server has, newest first."""
    there = frozenset(served)
    return [version for version in VERSIONS[api] if version in there]


def least(group: Object) -> int:
    """Return how many pods of a PodGroup start together; 1 where its pods need not wait for one another."""
    spec = group.get("spec") or {}
    if "schedulingPolicy" in spec:
        return int(((spec["schedulingPolicy"] or {}).get("gang") or {}).get("minCount") or 1)
    return int(spec.get("minMember") or 1)
