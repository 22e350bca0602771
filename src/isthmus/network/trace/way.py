"""Why A reaches B, or does not: each rule on the way, in order, up to the one that decides.

Nothing is decided here. What a node has is what `plan` wants of it, its filter is the text of `rules` with the
elements that follow from that plan; this only knows the way of a packet: from a pod over its leg, past the bridge,
through VXLAN to another node, into the node and out of it, or from outside by a gateway to a port that its user opened,
and which hook sees it where. All nodes follow the same state and have the same settings, so any node can compute the
whole path; only a node itself knows what it failed to apply.

It is the way of the first packet. Answers pass by connection tracking, which belongs to every way that is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from isthmus.model.network import Exposure, State
from isthmus.model.networks.ipv6 import beside, prefix
from isthmus.model.networks.wireguard import DEVICE
from isthmus.model.node_network import FLOOD, VXLAN_PORT, Forward, Leg, NodePlan, mac
from isthmus.network.drivers.private import plan
from isthmus.network.gateways.choice import leading, way_out
from isthmus.network.node import rules
from isthmus.network.trace.points import Kind, Point, at_pod
from isthmus.network.trace.ruleset import POLICY, Fate, Met, Packet, Ruleset, Unknown, Value

# The interface of a node to all that is no pod; its true name matters to no rule.
UPLINK = "uplink"
# Where programs send from that choose no port (RFC 6335, 6); a privileged one reaches less.
EPHEMERAL = 49152
# RFC 3849: an address of documentation, as that of hosts and of the outside, which have none here.
_NO_POD = IPv6Address("2001:db8::1")
_Packet = dict[str, Value]
MARK = f"meta mark & {rules.MARK:#x}"


class Verdict(StrEnum):
    """What comes of it: of a step, or of all."""

    PASSES = "passes"
    REFUSED = "refused"
    # Nothing forbids it, but something on the way is not there.
    MISSING = "missing"
    # On the port, or on what the listener is bound to.
    DEPENDS = "depends"


ENDS = (Verdict.REFUSED, Verdict.MISSING)


@dataclass(frozen=True, slots=True)
class Step:
    """Something on the way.

    Attributes:
        node: where.
        check: what is asked: `member`, `leg`, `pod`, `forwarding`, `route`, `gateway`, `exposed`, or a chain of the
            filter.
        verdict: what comes of it.
        by: the rule, or what lacks.
    """

    node: str
    check: str
    verdict: Verdict
    by: str


@dataclass(frozen=True, slots=True)
class OverIPv6:
    """By IPv6: the addresses that go with IPv4 ones.

    Attributes:
        begin: what they begin with.
        pods: the range of private networks; nothing else has an address.
    """

    begin: IPv6Network
    pods: IPv4Network

    @classmethod
    def of(cls, settings: rules.Settings) -> OverIPv6 | None:
        """Return that of a cluster; None where pods have no IPv6."""
        return cls(prefix(settings.ipv6), settings.pods) if settings.ipv6 else None

    def address(self, address: IPv4Address) -> IPv6Address:
        """Return the address that goes with one."""
        return beside(self.begin, address) if address in self.pods else _NO_POD


@dataclass(frozen=True, slots=True)
class Probe:
    """What is sent.

    Attributes:
        protocol: its protocol.
        port: of TCP and UDP; 0 for any.
        over: by which addresses; None for IPv4.
    """

    protocol: rules.Protocol
    port: int = 0
    over: OverIPv6 | None = None

    def addresses(self, source: IPv4Address, target: IPv4Address) -> _Packet:
        """Return what the head of a packet from one address to another has."""
        if self.over is None:
            return {"ip saddr": source, "ip daddr": target}
        return {"ip6 saddr": self.over.address(source), "ip6 daddr": self.over.address(target)}

    def packet(self, source: IPv4Address, target: IPv4Address) -> _Packet:
        """Return the first packet from one address to another, without interfaces."""
        seen: _Packet = {
            "meta nfproto": "ipv6" if self.over else "ipv4",
            "meta l4proto": str(self.protocol),
            **self.addresses(source, target),
            "ct state": "new",
            "ct direction": "original",
            MARK: 0,
        }
        if self.protocol is rules.Protocol.ICMP:
            if self.over:
                return seen | {"meta l4proto": "ipv6-icmp", "icmpv6 type": "echo-request"}
            return seen | {"icmp type": "echo-request"}
        port: Value = self.port or Unknown.UNKNOWN
        if self.protocol is rules.Protocol.TCP:
            seen |= {"tcp flags & (fin | syn | rst | ack)": "syn"}
        ports: _Packet = {f"{self.protocol} {way}": each for way, each in (("dport", port), ("sport", EPHEMERAL))}
        return seen | ports | {"th dport": port, "th sport": EPHEMERAL, "socket wildcard": Unknown.UNKNOWN}


def trace(state: State, settings: rules.Settings, source: Point, target: Point, probe: Probe) -> list[Step]:
    """Return the steps from one point to another, up to the first that ends the way.

    Args:
        state: of etcd; what a user may not know is left out of it.
        settings: the filter's, the same on all nodes.
        source: where packets come from.
        target: where they go to.
        probe: what is sent.
    """
    steps = []
    for step in _Way(state, settings, probe).steps(source, target):
        steps.append(step)
        if step.verdict in ENDS:
            break
    return steps


def verdict(steps: Iterable[Step]) -> Verdict:
    """Return what comes of all steps."""
    seen = [step.verdict for step in steps]
    worst = (Verdict.REFUSED, Verdict.MISSING, Verdict.DEPENDS)
    return next((each for each in worst if each in seen), Verdict.PASSES)


def failures(node: str, errors: Mapping[str, str], steps: Iterable[Step], *, show_all: bool) -> list[Step]:
    """Return what a node on the way failed to carry out: its rules may not be those of the trace.

    Args:
        node: the node that answers; it knows no faults of others.
        errors: subject -> why, of its last pass.
        steps: the way.
        show_all: whether the asker may read why, and of everybody's interfaces.
    """
    if not any(step.node == node for step in steps):
        return []
    seen = errors if show_all else dict.fromkeys(_EVERYBODYS & errors.keys(), "an admin finds why in the daemon's log")
    return [Step(node, subject, Verdict.DEPENDS, f"not as wanted: {why}") for subject, why in seen.items()]


# Subjects of failures that concern all users of a node.
_EVERYBODYS = frozenset({"state", "filter"})


@dataclass(frozen=True)
class _Way:
    state: State
    settings: rules.Settings
    probe: Probe
    plans: dict[str, NodePlan] = field(default_factory=dict)

    @cached_property
    def _tables(self) -> dict[str, dict[str, list[str]]]:
        return rules.tables(self.settings)

    def steps(self, source: Point, target: Point) -> Iterator[Step]:
        """Yield the steps; some that come after one that ends the way cannot be computed."""
        if source.kind is Kind.POD:
            yield from self._from_pod(source, target)
        elif source.node and target.address in self.settings.pods:
            yield from self._from_host_to_pods(source, target)
        elif source.node:
            held = self._is_held(target.address)
            here = source.node == (leading(self.state) if held else target.node)
            packet = self.probe.packet(source.address, target.address)
            yield from self._hook(source.node, "output", packet | _sent("lo" if here else UPLINK, source.uid))
            if held:
                yield from self._to_held(packet | {"iifname": "lo" if here else UPLINK})
            elif not here:
                yield from self._arrives(target, source.address)
        else:
            yield from self._from_outside(source, target)

    def _from_outside(self, source: Point, target: Point) -> Iterator[Step]:
        if self._is_held(target.address):
            yield from self._by_door(source, target.address)
        elif target.reservation and self.settings.gateways:
            yield from self._to_reservation(source, target)
        elif target.kind in (Kind.NOBODY, Kind.SERVICE, Kind.OUTSIDE):
            yield Step("", "route", Verdict.MISSING, f"{target.text}: no way from outside leads over this cluster")
        else:
            yield from self._arrives(target, source.address)

    def _to_reservation(self, source: Point, target: Point) -> Iterator[Step]:
        """Find the outside address at which a port of a reservation is open, and enter there."""
        name = target.reservation
        doors = self._doors(lambda each: (each.uid, each.reservation) == (target.uid, name))
        shown = f"{name} is open at {', '.join(map(_door, doors))}"
        door = next((each for each in doors if each.port == self.probe.port), None)
        if door:
            yield Step("", "exposed", Verdict.PASSES, f"{name} is open at {_door(door)}")
            yield from self._by_door(source, door.address)
        elif doors and not self.probe.port:
            yield Step("", "exposed", Verdict.DEPENDS, f"{shown}; give --port")
        else:
            opens = f"`isthmus network expose {name} PORT` opens one where a rule of network_ingress lets anybody in"
            yield Step(
                "", "exposed", Verdict.REFUSED, f"{shown} alone" if doors else f"{name} has no open port; {opens}"
            )

    def _by_door(self, source: Point, held: IPv4Address) -> Iterator[Step]:
        """Enter by an outside address, which is turned to the pod behind the port, on the gateway that leads out."""
        gateway = leading(self.state)
        if not gateway:
            yield from self._to_held({})
            return
        packet = self.probe.packet(source.address, held) | {"iifname": UPLINK}
        doors = self._doors(lambda each: each.address == held)
        if doors and not self.probe.port:
            yield Step(gateway, "exposed", Verdict.DEPENDS, f"open: {', '.join(map(_door, doors))}; give --port")
            return
        turned = self._ruleset(gateway, "inet").turned("exposed_in", packet)
        if turned is None:
            yield from self._to_held(packet)
            return
        point = at_pod(self.state, turned) or Point(Kind.NOBODY, turned, f"{turned}, of no reservation")
        yield Step(gateway, "exposed", Verdict.PASSES, f"{held} is turned to {point.text}")
        leg = self._leg_for(gateway, point)
        if leg is None:
            yield from self._has_leg(gateway, point.uid)
            return
        packet |= {"ip daddr": turned, "ct original ip daddr": held}
        yield from self._hook(gateway, "forward", packet | {"oifname": leg.name})
        if point.node == gateway:
            yield from self._has_pod(point)
        else:
            yield from self._over(leg, gateway, point, self.probe.packet(source.address, turned))

    def _to_held(self, packet: _Packet) -> Iterator[Step]:
        """Come to an outside address itself, which is the gateway's that leads out."""
        if gateway := leading(self.state):
            yield from self._hook(gateway, "input", packet)
        else:
            why = "none leads out now, so nobody has this address; see `isthmus network status`"
            yield Step("", "gateway", Verdict.MISSING, why)

    def _doors(self, is_meant: Callable[[Exposure], bool]) -> list[Exposure]:
        """Return the open ports of the probe's protocol that are meant."""
        return [
            each for each in self.state.exposed.values() if is_meant(each) and str(each.protocol) == self.probe.protocol
        ]

    def _is_held(self, address: IPv4Address) -> bool:
        """Return whether it is an outside address."""
        return self.settings.gateways is not None and address in self.settings.gateways.addresses

    def _from_pod(self, source: Point, target: Point) -> Iterator[Step]:
        node = source.node
        yield from self._has_pod(source)
        leg, pod = self._leg(node, source.uid), self._plan(node).pods[source.job]
        is_own = any(target.address in block for block in leg.blocks)
        if self.probe.over and not is_own:
            yield Step(node, "route", Verdict.MISSING, "by IPv6 a pod has routes to its own user's network alone")
            return
        frame: _Packet = {"iifname": pod.veth, "ether saddr": mac(pod.address)}
        frame |= self.probe.addresses(pod.address, target.address)
        if self.probe.over:
            frame["ether type"] = "ip6"
        yield from self._hook(node, "prerouting", frame, "bridge")
        by_leg = None if self.probe.over else dict(pod.peers).get(target.address)
        packet = self.probe.packet(pod.address, target.address)
        if by_leg is not None:
            yield Step(node, "route", Verdict.PASSES, f"{target.address} by the user's leg there, {by_leg}")
            yield from self._over(leg, node, replace(target, kind=Kind.LEG, address=by_leg, uid=source.uid), packet)
        elif is_own:
            yield from self._over(leg, node, target, packet)
        elif target.node == node and target.kind in (Kind.HOST, Kind.LEG):
            yield from self._hook(node, "input", packet | {"iifname": leg.name})
        elif self.settings.gateways and self._is_outside(target.address):
            yield from self._by_gateway(leg, node, target.address, packet)
        else:
            out = self._interface(node, target)
            yield from self._hook(node, "forward", packet | {"iifname": leg.name, "oifname": out})
            yield from self._arrives(target, self.state.nodes[node].address)

    def _is_outside(self, address: IPv4Address) -> bool:
        """Return whether packets go to a gateway; the bridge's rules ask the same."""
        inside = (self.settings.pods, *self.settings.barred, *self.settings.hosts)
        members = {node.address for node in self.state.nodes.values()}
        return address not in members and not any(address in each for each in inside)

    def _by_gateway(self, leg: Leg, node: str, target: IPv4Address, packet: _Packet) -> Iterator[Step]:
        way = way_out(self.state, self.state.users[leg.uid])
        if way is None:
            yield Step(node, "gateway", Verdict.MISSING, "none where the user has a leg; see `isthmus network status`")
            return
        gateway, address = way
        yield Step(node, "gateway", Verdict.PASSES, f"{gateway}, by the user's leg there, {address}")
        if gateway != node:
            hop = Point(Kind.LEG, address, f"leg on {gateway}, {address}", gateway, leg.uid)
            yield from self._tunnel(leg, node, hop, None)
        yield from self._has_leg(gateway, leg.uid)
        packet |= {"iifname": leg.name}
        if self._is_held(target):
            yield from self._to_held(packet)
        else:
            yield from self._hook(gateway, "forward", packet | {"oifname": UPLINK})

    def _from_host_to_pods(self, source: Point, target: Point) -> Iterator[Step]:
        node, uid = source.node, source.uid
        yield from self._is_member(node)
        leg = self._leg_for(node, target)
        if leg is None and uid is not None and uid == target.uid:
            yield Step(
                node, "leg", Verdict.MISSING, "none of the user's; a job there or `isthmus network join` makes one"
            )
        local = target.kind is Kind.LEG and target.node == node
        packet = self.probe.packet(leg.address if leg else source.address, target.address)
        yield from self._hook(node, "output", packet | _sent("lo" if local else self._interface(node, target), uid))
        if leg is None:
            yield Step(node, "leg", Verdict.MISSING, f"no leg of the network that {target.address} is in")
        elif local:
            yield from self._hook(node, "input", packet | {"iifname": "lo"})
        else:
            yield from self._over(leg, node, target, packet, uid)

    def _over(
        self, leg: Leg, node: str, hop: Point, packet: dict[str, Value], uid: int | None = None
    ) -> Iterator[Step]:
        """Go over a leg's bridge to a pod or leg of the same network; by VXLAN where it is on another node."""
        if not hop.node:
            yield Step(node, "pod", Verdict.MISSING, f"{hop.text}: nobody answers")
            return
        if hop.node != node:
            yield from self._tunnel(leg, node, hop, uid)
        if hop.kind is Kind.LEG:
            yield from self._has_leg(hop.node, hop.uid)
            yield from self._hook(hop.node, "input", packet | {"iifname": leg.name})
            return
        yield from self._has_pod(hop)
        if uid is None or hop.node != node:
            yield from self._hook(hop.node, "forward", packet | {"iifname": leg.name, "oifname": leg.name})

    def _tunnel(self, leg: Leg, node: str, hop: Point, uid: int | None) -> Iterator[Step]:
        yield from self._is_member(hop.node)
        peer = self.state.nodes[hop.node].address
        desired = (Forward(FLOOD, peer), Forward(mac(hop.address), peer))
        lacking = [each.mac for each in desired if each not in leg.forwards]
        entry = f"{mac(hop.address)} at {peer} on {leg.vxlan}"
        yield Step(node, "forwarding", *((Verdict.MISSING, f"no {entry}") if lacking else (Verdict.PASSES, entry)))
        outer = Probe(rules.Protocol.UDP, VXLAN_PORT).packet(leg.underlay, peer)
        # Marked by the inner packet's way out, or without a socket, as what a bridge forwards.
        way = DEVICE if self.settings.wireguard_port else UPLINK
        yield from self._hook(node, "output", outer | _sent(way, uid) | {MARK: rules.MARK}, about="VXLAN")
        yield from self._hook(hop.node, "input", outer | {"iifname": way}, about="VXLAN")

    def _arrives(self, target: Point, seen_as: IPv4Address) -> Iterator[Step]:
        """Come to a node from its uplink."""
        if not target.node:
            return
        yield from self._is_member(target.node)
        packet = self.probe.packet(seen_as, target.address) | {"iifname": UPLINK}
        if target.kind is Kind.POD:
            out = self._interface(target.node, target)
            yield from self._hook(target.node, "forward", packet | {"oifname": out})
        else:
            yield from self._hook(target.node, "input", packet)

    def _is_member(self, node: str) -> Iterator[Step]:
        if node not in self.state.nodes:
            yield Step(node, "member", Verdict.MISSING, "unknown in etcd; restart isthmus-networkd there")

    def _has_leg(self, node: str, uid: int | None) -> Iterator[Step]:
        leg = next((each for each in self._plan(node).legs.values() if each.uid == uid), None)
        if leg is None:
            yield Step(node, "leg", Verdict.MISSING, f"none of uid {uid}; a job or a lease there makes one")
        else:
            yield Step(node, "leg", Verdict.PASSES, f"{leg.name}, {leg.address}")

    def _has_pod(self, point: Point) -> Iterator[Step]:
        yield from self._is_member(point.node)
        yield from self._has_leg(point.node, point.uid)
        pod = self._plan(point.node).pods.get(point.job)
        if pod is None:
            yield Step(point.node, "pod", Verdict.MISSING, f"job {point.job} has none")
        else:
            yield Step(point.node, "pod", Verdict.PASSES, f"{pod.namespace}, {pod.address}")

    def _plan(self, node: str) -> NodePlan:
        if node not in self.plans:
            ipv6 = self.settings.ipv6
            self.plans[node] = plan.desired(self.state, node, prefix(ipv6) if ipv6 else None)
        return self.plans[node]

    def _leg(self, node: str, uid: int | None) -> Leg:
        return next(each for each in self._plan(node).legs.values() if each.uid == uid)

    def _leg_for(self, node: str, target: Point) -> Leg | None:
        """Return the leg by which a node would reach an address."""
        legs = self._plan(node).legs.values()
        return next((leg for leg in legs if any(target.address in block for block in leg.blocks)), None)

    def _interface(self, node: str, target: Point) -> str:
        leg = self._leg_for(node, target)
        return leg.name if leg else UPLINK

    def _hook(self, node: str, hook: str, packet: Packet, family: str = "inet", about: str = "") -> Iterator[Step]:
        filtering = self._ruleset(node, family)
        seen = False
        for chain in filtering.at(hook):
            *unsure, last = filtering.walk(chain, packet)
            # That a further chain has no rule about a packet is not worth a word.
            if not (seen and last.rule == POLICY and not unsure):
                yield from _steps(node, unsure, last, about)
            seen = True

    def _ruleset(self, node: str, family: str) -> Ruleset:
        return Ruleset(self._tables[family], rules.elements(self._plan(node), self.state, node, self.settings))


def _steps(node: str, unsure: Iterable[Met], last: Met, about: str) -> Iterator[Step]:
    differing = [met for met in unsure if (met.fate is Fate.ACCEPT) != (last.fate is Fate.ACCEPT)]
    for met in differing:
        yield Step(node, met.chain, Verdict.DEPENDS, _text(met, about))
    if not differing:
        passes = Verdict.PASSES if last.fate is Fate.ACCEPT else Verdict.REFUSED
        yield Step(node, last.chain, passes, _text(last, about))


def _sent(interface: str, uid: int | None) -> _Packet:
    """Return what a packet has that leaves a node; a bridged one has no socket."""
    return {"oifname": interface} if uid is None else {"oifname": interface, "meta skuid": uid}


def _door(exposure: Exposure) -> str:
    return f"{exposure.protocol} {exposure.address}:{exposure.port}"


def _text(met: Met, about: str) -> str:
    return ": ".join(filter(None, (about, met.why, met.rule)))
