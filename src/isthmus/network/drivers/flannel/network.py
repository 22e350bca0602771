"""Flannel's network on this node, for operations, and the loop that follows etcd's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isthmus.clients.cni.attachments import Attachments
from isthmus.clients.cni.plugins import Plugins, parse_list
from isthmus.model.flannel import BRIDGE
from isthmus.model.network import Attachment, Driver
from isthmus.model.node_network import SharedPod
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.flannel.converge import FlannelConverger
from isthmus.network.drivers.flannel.definition import FlannelSettings
from isthmus.network.drivers.node import ECHO_S, SHARED_ERRORS, NodeContext, description
from isthmus.network.node.converge import Converger
from isthmus.network.state.view import View


def connect(context: NodeContext, settings: SharedSettings | None) -> FlannelNetwork:
    """Return Flannel's network; pods that an earlier daemon made are known at once.

    Raises:
        CniError: the list of plugins cannot be used.
        OSError: it cannot be read.
    """
    assert isinstance(settings, FlannelSettings)  # noqa: S101 -- the registry's promise
    network = parse_list(settings.list.read_text(encoding="utf-8"), str(settings.list))
    attachments = Attachments(Driver.FLANNEL, network, Plugins(settings.plugins), settings.records)
    store, view = context.store, context.view
    flannel = FlannelConverger(context.node, attachments, lambda each: store.attach(each, view.snapshot))
    return FlannelNetwork(context.node, view, flannel, context.converger, context.names)


class FlannelNetwork:
    """One network for all; rules and names follow when a pod is there, and before its job begins."""

    def __init__(
        self,
        node: str,
        view: View,
        flannel: FlannelConverger,
        converger: Converger,
        names: NodeNames,
        echo_s: float = ECHO_S,
    ) -> None:
        self._echo_s = echo_s
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
        known = Attachment(job, self._node, pod.address)
        if not self._view.wait(lambda state: state.attachments.get((job, self._node)) == known, self._echo_s):
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the pod's address and does not show it")
        self._converger.run(self._view.state)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome, guarded = self._flannel.last, self._converger.last
        pod = outcome.pods.get(job)
        if pod is None or pod.namespace in outcome.errors or guarded.errors.keys() & SHARED_ERRORS:
            return None
        if guarded.plan.shared.get(job) != pod:
            return None
        return description(pod.namespace, BRIDGE, pod.address, self._names, job)

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

    def shared_pods(self) -> Mapping[int, SharedPod]:
        """See Network."""
        return self._flannel.last.pods

    def loop(self) -> Callable[[float], None]:
        """See Network; plugins take tens of milliseconds, and private networks do not wait for them."""
        return self._follow

    def _follow(self, idle_s: float) -> None:
        turn = 0
        while True:
            turn = self._view.next_turn(turn, idle_s)
            had = self._flannel.last.pods
            if self._flannel.run(self._view.state).pods != had:
                self._converger.run(self._view.state)
