"""Traces the way to a Service's address: the rules in the sender's pod, and the way on from there.

Nobody has such an address. A pod's own rules turn what the pod sends there to an endpoint, before any filter sees it;
hosts have no such rules, and nothing from outside comes so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from isthmus.model.network import State
from isthmus.model.services import Answering, Endpoint, ServicePort, Table, Transport
from isthmus.network.node import rules
from isthmus.network.trace.points import Kind, Point
from isthmus.network.trace.way import Probe, Step, Verdict, trace

_CHECK = "services"
# More are counted, not named.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class PodTable:
    """What is known of the sender's Services.

    Attributes:
        is_known: whether anything is; the node of the pod alone can know.
        table: as its rules have it; None for a pod without any.
    """

    is_known: bool
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class ToService:
    """Traces ways to addresses of Services.

    Attributes:
        state: of etcd, as far as the asker may know.
        settings: the filter's.
        at: returns what is at an address.
    """

    state: State
    settings: rules.Settings
    at: Callable[[IPv4Address], Point]

    def trace(self, source: Point, target: Point, probe: Probe, known: PodTable) -> list[Step]:
        """Return the steps, up to the first that ends the way.

        Args:
            source: where packets come from.
            target: the address of Services.
            probe: what is sent.
            known: of the source's Services, where it is a pod.
        """
        if source.kind is not Kind.POD:
            return self._from_elsewhere(source, target, probe)
        if not known.is_known:
            why = f"its pod turns {target.address} itself; on {source.node}, `isthmus network trace` shows where to"
            return [Step(source.node, _CHECK, Verdict.DEPENDS, why)]
        if known.table is None:
            why = f"the pod has no Services: {target.address} is an address as any other"
            outside = replace(target, kind=Kind.OUTSIDE)
            return [Step(source.node, _CHECK, Verdict.PASSES, why), *self._on(source, outside, probe)]
        return self._turned(source, target, probe, known.table)

    def _from_elsewhere(self, source: Point, target: Point, probe: Probe) -> list[Step]:
        if not source.node:
            return self._on(source, target, probe)
        why = f"{target.address} is turned to a pod within pods alone; from a host, use a pod's address or kubectl"
        return [Step(source.node, _CHECK, Verdict.MISSING, why)]

    def _turned(self, source: Point, target: Point, probe: Probe, table: Table) -> list[Step]:
        here = {service: text for service, text in sorted(table.items()) if service.address == target.address}
        found = _meant(here, target.address, probe)
        if found is None:
            return [_refused(source, target, here)]
        if not probe.port:
            text = "; ".join(f"{service.transport} {service.port} to {_named(here[service])}" for service in here)
            return [Step(source.node, _CHECK, Verdict.DEPENDS, f"{text}; give --port")]
        first = here[found].endpoints[0]
        step = Step(source.node, _CHECK, Verdict.PASSES, f"{found} is turned to {_named(here[found])}")
        if first.address == source.address:
            return [step, Step(source.node, "pod", Verdict.PASSES, "the pod itself; nothing is in its way")]
        return [step, *self._on(source, self.at(first.address), replace(probe, port=first.port))]

    def _on(self, source: Point, target: Point, probe: Probe) -> list[Step]:
        return trace(self.state, self.settings, source, target, probe)


def _meant(here: Table, address: IPv4Address, probe: Probe) -> ServicePort | None:
    """Return the place that is asked for, any of its protocol for no port; None where nobody answers."""
    if probe.protocol is rules.Protocol.ICMP:
        return None
    transport = Transport(probe.protocol)
    if probe.port:
        service = ServicePort(address, transport, probe.port)
        return service if service in here else None
    return next((service for service in here if service.transport is transport), None)


def _refused(source: Point, target: Point, here: Table) -> Step:
    ports = ", ".join(f"{service.transport} {service.port}" for service in here)
    has = f"the Service at {target.address} has endpoints for {ports} alone" if here else ""
    why = has or f"no Service with an endpoint is at {target.address}"
    return Step(source.node, _CHECK, Verdict.REFUSED, f"{why}; the pod's own rules refuse all else")


def _named(answering: Answering) -> str:
    endpoints: tuple[Endpoint, ...] = answering.endpoints
    if len(endpoints) == 1:
        return str(endpoints[0])
    named = ", ".join(map(str, endpoints[:_NAMED]))
    more = f" and {len(endpoints) - _NAMED} more" if len(endpoints) > _NAMED else ""
    return f"one of {named}{more}, here to the first"
