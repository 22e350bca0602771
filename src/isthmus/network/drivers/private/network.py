"""Private networks on this node, for operations: the daemon's own pass makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isthmus.model.node_network import SharedPod
from isthmus.network.dns.names import NodeNames
from isthmus.network.drivers.contract import SharedSettings
from isthmus.network.drivers.node import SHARED_ERRORS, NodeContext, description
from isthmus.network.node.converge import Converger
from isthmus.network.state.view import View


def connect(context: NodeContext, settings: SharedSettings | None) -> PrivateNetwork:
    """Return private networks on this node; they have no settings of their own."""
    assert settings is None  # noqa: S101 -- the registry's promise
    return PrivateNetwork(context.view, context.converger, context.names)


class PrivateNetwork:
    """A network for each user."""

    def __init__(self, view: View, converger: Converger, names: NodeNames) -> None:
        self._view = view
        self._converger = converger
        self._names = names

    def make(self, job: int) -> None:
        """See Network."""
        self._converger.run(self._view.state, again=False)

    def ready(self, job: int) -> Mapping[str, Any] | None:
        """See Network."""
        outcome = self._converger.last
        pod = outcome.plan.pods.get(job)
        leg = outcome.plan.legs.get(pod.vni) if pod else None
        if pod is None or leg is None or outcome.errors.keys() & {pod.namespace, leg.name, *SHARED_ERRORS}:
            return None
        return description(pod.namespace, leg.name, pod.address, self._names, job)

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

    def shared_pods(self) -> Mapping[int, SharedPod]:
        """See Network."""
        return {}

    def loop(self) -> None:
        """See Network."""
        return None
