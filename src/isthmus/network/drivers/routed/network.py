"""The routed network on this node, for operations, and the loop that follows etcd's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isthmus.clients.netlink.routed import RoutedKernel
from isthmus.model.network import Attachment
from isthmus.model.networks.routed import VETH
from isthmus.model.node_network import SharedPod
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import RequestError
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.node import ECHO_S, SHARED_ERRORS, NodeContext, description
from isthmus.network.drivers.routed.converge import ROUTES, RoutedConverger
from isthmus.network.drivers.routed.definition import RoutedSettings


def connect(context: NodeContext, settings: SharedSettings | None) -> RoutedNetwork:
    """Return the routed network; pods that an earlier daemon made are known at once."""
    assert isinstance(settings, RoutedSettings)  # noqa: S101 -- the registry's promise
    plan, store, view = settings.network.plan, context.store, context.view
    routed = RoutedConverger(
        context.node, plan, RoutedKernel(plan.range), lambda each: store.attach(each, view.snapshot)
    )
    return RoutedNetwork(context, routed)


class RoutedNetwork:
    """One network in which each user's pods reach one another; rules follow before a pod's job begins."""

    def __init__(self, context: NodeContext, routed: RoutedConverger, echo_s: float = ECHO_S) -> None:
        self._context, self._routed, self._echo_s = context, routed, echo_s

    def make(self, job: int) -> None:
        """See Network."""
        context = self._context
        pod = self._routed.run(context.view.state).pods.get(job)
        if pod is None or pod.namespace in self._routed.last.errors:
            return
        known = Attachment(job, context.node, pod.address)
        if not context.view.wait(lambda state: state.attachments.get((job, context.node)) == known, self._echo_s):
            raise RequestError(ErrorCode.UNAVAILABLE, "etcd took the pod's address and does not show it")
        context.converger.run(context.view.state)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome, guarded = self._routed.last, self._context.converger.last
        pod = outcome.pods.get(job)
        if pod is None or outcome.errors.keys() & {pod.namespace, ROUTES} or guarded.errors.keys() & SHARED_ERRORS:
            return None
        if guarded.plan.shared.get(job) != pod:
            return None
        return description(pod.namespace, f"{VETH}{job}", pod.address, self._context.names, job)

    def owners(self) -> Iterable[int]:
        """See Network."""
        return [pod.uid for pod in self._routed.last.pods.values()]

    def owner(self, job: int) -> int | None:
        """See Network."""
        pod = self._routed.last.pods.get(job)
        return pod.uid if pod else None

    def errors(self) -> Mapping[str, str]:
        """See Network."""
        return self._routed.last.errors

    def shared_pods(self) -> Mapping[int, SharedPod]:
        """See Network."""
        return self._routed.last.pods

    def loop(self) -> Callable[[float], None]:
        """See Network."""
        return self._follow

    def _follow(self, idle_s: float) -> None:
        turn = 0
        while True:
            turn = self._context.view.next_turn(turn, idle_s)
            had = self._routed.last.pods
            if self._routed.run(self._context.view.state).pods != had:
                self._context.converger.run(self._context.view.state)
