"""The networks a job can have, for operations: how each is made on this node, and what its steps are told of it.

One object per driver that the cluster has; what etcd must hold for a driver is in `store.TAKES`. Plan, names, packet
filter and trace ask a job's driver too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import Any, Protocol

from isthmus.model.network import Attachment
from isthmus.model.node_network import FLANNEL_BRIDGE
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.flannel import FlannelConverger
from isthmus.network.node.converge import Converger
from isthmus.network.state.view import View

# How long for etcd's word that a change of one's own was made.
ECHO_S = 5.0
# Where the kernel has namespaces by name (ip-netns(8)).
NAMESPACES = "/run/netns"
# Errors that are every pod's.
_SHARED = {"filter", "state"}


class Network(Protocol):
    """One driver on this node."""

    def make(self, job: int) -> None:
        """Make what is wanted on this node, the job's pod with it.

        Raises:
            RequestError: etcd does not answer.
        """

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """Return what the job's steps need to know; None unless all of it is there."""

    def owners(self) -> Iterable[int]:
        """Return the uid of each pod here."""

    def owner(self, job: int) -> int | None:
        """Return the uid of a job's pod here, None without one."""

    def errors(self) -> Mapping[str, str]:
        """Return what is not as wanted, and why."""


class PrivateNetwork:
    """A network for each user."""

    def __init__(self, view: View, converger: Converger, names: NodeNames) -> None:
        self._view = view
        self._converger = converger
        self._names = names

    def make(self, job: int) -> None:
        """See Network."""
        self._converger.run(self._view.state)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome = self._converger.last
        pod = outcome.plan.pods.get(job)
        leg = outcome.plan.legs.get(pod.vni) if pod else None
        if pod is None or leg is None or outcome.errors.keys() & {pod.namespace, leg.name, *_SHARED}:
            return None
        return _told(pod.namespace, leg.name, pod.address, self._names, job)

    def owners(self) -> Iterable[int]:
        """See Network."""
        return [pod.uid for pod in self._converger.last.plan.pods.values()]

    def owner(self, job: int) -> int | None:
        """See Network."""
        pod = self._converger.last.plan.pods.get(job)
        return pod.uid if pod else None

    def errors(self) -> Mapping[str, str]:
        """See Network."""
        return self._converger.last.errors


class FlannelNetwork:
    """One network for all; rules and names follow when a pod is there, and before its job begins."""

    def __init__(
        self, node: str, view: View, flannel: FlannelConverger, converger: Converger, names: NodeNames
    ) -> None:
        self._node = node
        self._view = view
        self._flannel = flannel
        self._converger = converger
        self._names = names

    def make(self, job: int) -> None:
        """See Network."""
        pod = self._flannel.run(self._view.state).pods.get(job)
        if pod is None or pod.namespace in self._flannel.last.errors:
            return
        told = Attachment(job, self._node, pod.address)
        if not self._view.wait(lambda state: state.attachments.get((job, self._node)) == told, ECHO_S):
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the pod's address and does not tell of it")
        self._converger.run(self._view.state)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome, guarded = self._flannel.last, self._converger.last
        pod = outcome.pods.get(job)
        if pod is None or pod.namespace in outcome.errors or guarded.errors.keys() & _SHARED:
            return None
        if guarded.plan.flannel.get(job) != pod:
            return None
        return _told(pod.namespace, FLANNEL_BRIDGE, pod.address, self._names, job)

    def owners(self) -> Iterable[int]:
        """See Network."""
        return [pod.uid for pod in self._flannel.last.pods.values()]

    def owner(self, job: int) -> int | None:
        """See Network."""
        pod = self._flannel.last.pods.get(job)
        return pod.uid if pod else None

    def errors(self) -> Mapping[str, str]:
        """See Network."""
        return self._flannel.last.errors


def _told(namespace: str, leg: str, address: IPv4Address, names: NodeNames, job: int) -> Mapping[str, Any]:
    return {
        "netns": f"{NAMESPACES}/{namespace}",
        "leg": leg,
        "address": str(address),
        "resolv_conf": str(names.resolv_conf(job)),
    }
