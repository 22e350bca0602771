"""Pods that CNI plugins connect, for operations, and the loop that follows etcd's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isthmus.model.network import Attachment
from isthmus.model.node_network import SharedPod
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.attached import AttachedConverger
from isthmus.network.drivers.node import ECHO_S, SHARED_ERRORS, description
from isthmus.network.node.converge import Converger
from isthmus.network.state.view import View


class AttachedNetwork:
    """One network for all; rules and names follow when a pod is there, and before its job begins.

    Args:
        node: this node's name.
        view: the newest snapshot.
        attached: makes the pods.
        converger: rules and names.
        names: the files that pods resolve names with.
        echo_s: how long for etcd's word that a change of one's own was made.
        bridge: the interface with the pods' gateway, where a pod itself does not say it.
    """

    def __init__(
        self,
        node: str,
        view: View,
        attached: AttachedConverger,
        converger: Converger,
        names: NodeNames,
        echo_s: float = ECHO_S,
        bridge: str = "",
    ) -> None:
        self._echo_s = echo_s
        self._node = node
        self._view = view
        self._attached = attached
        self._converger = converger
        self._names = names
        self._bridge = bridge

    def make(self, job: int) -> None:
        """See Network."""
        pod = self._attached.run(self._view.state).pods.get(job)
        if pod is None or pod.namespace in self._attached.last.errors:
            return
        known = Attachment(job, self._node, pod.address)
        if not self._view.wait(lambda state: state.attachments.get((job, self._node)) == known, self._echo_s):
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the pod's address and does not show it")
        self._converger.run(self._view.state)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome, guarded = self._attached.last, self._converger.last
        pod = outcome.pods.get(job)
        if pod is None or pod.namespace in outcome.errors or guarded.errors.keys() & SHARED_ERRORS:
            return None
        if guarded.plan.shared.get(job) != pod:
            return None
        return description(pod.namespace, pod.leg or self._bridge, pod.address, self._names, job)

    def owners(self) -> Iterable[int]:
        """See Network."""
        return [pod.uid for pod in self._attached.last.pods.values()]

    def owner(self, job: int) -> int | None:
        """See Network."""
        pod = self._attached.last.pods.get(job)
        return pod.uid if pod else None

    def errors(self) -> Mapping[str, str]:
        """See Network."""
        return self._attached.last.errors

    def shared_pods(self) -> Mapping[int, SharedPod]:
        """See Network."""
        return self._attached.last.pods

    def loop(self) -> Callable[[float], None]:
        """See Network; plugins take tens of milliseconds, and private networks do not wait for them."""
        return self._follow

    def _follow(self, idle_s: float) -> None:
        turn = 0
        while True:
            turn = self._view.next_turn(turn, idle_s)
            had = self._attached.last.pods
            if self._attached.run(self._view.state).pods != had:
                self._converger.run(self._view.state)
