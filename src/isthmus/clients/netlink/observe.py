"""Reads the pod networks' objects back from a node's kernel.

Only what the kernel does with packets is trusted: addresses, routes, masters, forwarding entries. The facts it has no
place for (whose it is) are JSON in the alias of the leg or of the pod's host end. The alias is written last, so what
has none is half made, `broken`. So is what lacks a part it cannot work without; missing routes, forwards or a lost
master only make the found leg or pod differ from the desired one, and are mended in place: a pod may be running.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import TypeVar

from isthmus.clients.netlink import links, namespaces, tables
from isthmus.clients.netlink.links import Link
from isthmus.clients.netlink.tables import Route
from isthmus.clients.netlink.wire import NotThereError, Wire
from isthmus.model.networks.ipv6 import beginning, beside, block_beside
from isthmus.model.node_network import LEG, NAMESPACE, POD_INTERFACE, UNKNOWN, VETH, VXLAN, Forward, Leg, NodePlan, Pod

_OURS = re.compile(rf"({LEG}|{VXLAN}|{VETH})\d+")
_OUR_NAMESPACE = re.compile(rf"{NAMESPACE}\d+")
_NOWHERE = IPv4Address(0)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """One namespace at one moment; by interface index, but `links` by name."""

    links: Mapping[str, Link]
    addresses: Mapping[int, list[IPv4Address]]
    routes: Mapping[int, list[Route]]
    forwards: Mapping[int, list[Forward]] = field(default_factory=dict)
    addresses6: Mapping[int, list[IPv6Address]] = field(default_factory=dict)
    routes6: Mapping[int, list[IPv6Network]] = field(default_factory=dict)

    def up(self, name: str) -> Link | None:
        """Return a link that is there and up."""
        link = self.links.get(name)
        return link if link and link.up else None


def alias(uid: int) -> str:
    """Return the facts of a leg or pod that only its alias can hold."""
    return json.dumps({"uid": uid}, separators=(",", ":"))


def look(wire: Wire, forwards: bool = False, ipv6: bool = False) -> Seen:
    """Read a namespace; forwarding entries only where asked for, there may be many, and so IPv6."""
    return Seen(
        {link.name: link for link in wire.read(links.links(), links.read_link)},
        _grouped(wire.read(tables.addresses(), tables.read_address)),
        _grouped(wire.read(tables.routes(), tables.read_route)),
        _grouped(wire.read(tables.forwards(), tables.read_forward)) if forwards else {},
        _grouped(wire.read(tables.addresses6(), tables.read_address6)) if ipv6 else {},
        _grouped(wire.read(tables.routes6(), tables.read_route6)) if ipv6 else {},
    )


def link(wire: Wire, name: str) -> Link | None:
    """Return one interface, None when there is none of that name."""
    found = wire.read(links.named_link(name), links.read_link)
    return found[0] if found else None


def plan(wire: Wire, folder: Path) -> NodePlan:
    """Return everything of ours."""
    seen = look(wire, forwards=True, ipv6=True)
    numbers = {(name[:2], int(name[2:])) for name in seen.links if _OURS.fullmatch(name)}
    found_legs = [leg(seen, number) for kind, number in numbers if kind == LEG]
    found_pods = [pod(seen, number, folder) for kind, number in numbers if kind == VETH]
    legs = {found.vni: found for found in found_legs if found}
    pods = {found.job: found for found in found_pods if found}
    whole = {name for found in legs.values() for name in (found.name, found.vxlan)}
    whole |= {name for each in pods.values() for name in (each.veth, each.namespace)}
    ours = {name for name in seen.links if _OURS.fullmatch(name)}
    ours |= {name for name in namespaces.names(folder) if _OUR_NAMESPACE.fullmatch(name)}
    return NodePlan(legs, pods, frozenset(ours - whole))


def leg(seen: Seen, vni: int) -> Leg | None:
    """Return a leg, None unless all it cannot work without is there."""
    bridge, vxlan = seen.up(f"{LEG}{vni}"), seen.up(f"{VXLAN}{vni}")
    uid = _uid(bridge.alias) if bridge else None
    if not bridge or not vxlan or uid is None or vxlan.master != bridge.index or not vxlan.local:
        return None
    addresses = seen.addresses.get(bridge.index, [])
    if len(addresses) != 1:
        return None
    blocks = _blocks(seen, bridge.index)
    return Leg(
        vni=vni,
        uid=uid,
        address=addresses[0],
        blocks=blocks,
        underlay=IPv4Address(vxlan.local),
        mtu=bridge.mtu if bridge.mtu == vxlan.mtu else 0,
        forwards=frozenset(seen.forwards.get(vxlan.index, [])),
        ipv6=_ipv6(seen, bridge.index, addresses[0], blocks),
    )


def pod(seen: Seen, job: int, folder: Path) -> Pod | None:
    """Return a pod, None unless all it cannot work without is there."""
    host = seen.up(f"{VETH}{job}")
    uid = _uid(host.alias) if host else None
    path = folder / f"{NAMESPACE}{job}"
    if not host or uid is None or not namespaces.exists(path):
        return None
    try:
        with closing(namespaces.enter(path)) as wire:
            inside = look(wire, ipv6=True)
    except NotThereError:
        return None
    eth = inside.up(POD_INTERFACE)
    addresses = inside.addresses.get(eth.index, []) if eth else []
    if not eth or len(addresses) != 1:
        return None
    bridges = {link.index: link.name for link in seen.links.values() if link.name.startswith(LEG)}
    blocks = _blocks(inside, eth.index)
    over = {route.to: route.gateway for route in inside.routes.get(eth.index, []) if route.gateway}
    return Pod(
        job=job,
        uid=uid,
        vni=int(bridges.get(host.master, f"{LEG}0")[len(LEG) :]),
        address=addresses[0],
        gateway=over.pop(IPv4Network("0.0.0.0/0"), _NOWHERE),
        blocks=blocks,
        mtu=eth.mtu if eth.mtu == host.mtu else 0,
        peers=frozenset((to.network_address, gateway) for to, gateway in over.items()),
        ipv6=_ipv6(inside, eth.index, addresses[0], blocks),
    )


def _blocks(seen: Seen, index: int) -> tuple[IPv4Network, ...]:
    return tuple(sorted(route.to for route in seen.routes.get(index, []) if not route.gateway))


def _ipv6(seen: Seen, index: int, address: IPv4Address, blocks: Iterable[IPv4Network]) -> IPv6Network | None:
    """Return what the IPv6 addresses of a link begin with, if these and its routes are those of its IPv4 ones."""
    addresses, routes = seen.addresses6.get(index, []), seen.routes6.get(index, [])
    if not addresses and not routes:
        return None
    found = beginning(addresses[0]) if addresses else UNKNOWN
    whole = addresses == [beside(found, address)] and set(routes) == {block_beside(found, each) for each in blocks}
    return found if whole else UNKNOWN


def _uid(text: str) -> int | None:
    try:
        return int(json.loads(text)["uid"])
    except (ValueError, TypeError, KeyError):
        return None


def _grouped(found: Iterable[tuple[int, T] | None]) -> dict[int, list[T]]:
    groups: dict[int, list[T]] = defaultdict(list)
    for pair in found:
        if pair:
            groups[pair[0]].append(pair[1])
    return groups
