"""Requests of rtnetlink(7) that pod networks are made of; a request says what should be, so it can be repeated.

Links have deeply nested attributes and are encoded by pyroute2. Addresses, routes and entries of neighbour tables are
flat, and a user of 4,000 pods has 12,000 of them: packed by hand one takes 2 us, by pyroute2 32 us.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from isthmus.clients.netlink_wire import GONE, THERE, Request, listing
from isthmus.model.node_network import FLOOD, VXLAN_PORT, Forward, mac

# linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h, linux/if_addr.h
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_GETADDR = 20, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEIGH, RTM_DELNEIGH, RTM_GETNEIGH = 28, 29, 30
REPLACE, EXCLUSIVE, CREATE, APPEND = 0x100, 0x200, 0x400, 0x800
AF_BRIDGE, AF_INET = 7, 2
UP = 1
MAIN_TABLE, PROTOCOL_STATIC, UNICAST = 254, 4, 1
SCOPE_GLOBAL, SCOPE_LINK = 0, 253
NTF_SELF, NTF_MASTER = 2, 4
_NOARP, _PERMANENT = 0x40, 0x80
_SKIP_STATISTICS = 1 << 3
_LINK = struct.Struct("=BxHiII")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_ROUTE = struct.Struct("=BBBBBBBBI")
_ADDRESS = struct.Struct("=BBBBI")
_ANY = IPv4Network("0.0.0.0/0")
Attributes = list[tuple[str, Any]]


def bridge(name: str, hardware: str) -> Request:
    """Make a leg's bridge. Snooping is off: it forgets groups without a querier, and pods then miss their packets."""
    return _new_link(name, "bridge", [("IFLA_BR_MCAST_SNOOPING", 0)], [("IFLA_ADDRESS", hardware)])


def vxlan(name: str, vni: int, local: IPv4Address, hardware: str, mtu: int, master: int) -> Request:
    """Make a leg's VXLAN device, which learns nothing from what it receives, on its bridge."""
    kind: Attributes = [
        ("IFLA_VXLAN_ID", vni),
        ("IFLA_VXLAN_LOCAL", str(local)),
        ("IFLA_VXLAN_PORT", VXLAN_PORT),
        ("IFLA_VXLAN_LEARNING", 0),
    ]
    more: Attributes = [("IFLA_ADDRESS", hardware), ("IFLA_MTU", mtu), ("IFLA_MASTER", master)]
    return _new_link(name, "vxlan", kind, more)


def veth(name: str, hardware: str, mtu: int, master: int, peer: Attributes) -> Request:
    """Make a pair of interfaces: one on a bridge, the other as `peer` says."""
    more: Attributes = [("IFLA_ADDRESS", hardware), ("IFLA_MTU", mtu), ("IFLA_MASTER", master)]
    return _new_link(name, "veth", [("VETH_INFO_PEER", {"attrs": peer})], more)


def change_link(name: str, attributes: Mapping[str, Any], up: bool = False) -> Request:
    """Change a link of that name."""
    return Request(
        RTM_NEWLINK, _link_body([("IFLA_IFNAME", name), *attributes.items()], up=up), f"change interface {name}"
    )


def up(index: int, what: str) -> Request:
    """Set a link up."""
    return Request(RTM_NEWLINK, _LINK.pack(0, 0, index, UP, UP), f"set {what} up")


def port(name: str, **options: int) -> Request:
    """Set options of a bridge's port; IFLA_BRPORT_... in lower case."""
    data: Attributes = [(f"IFLA_BRPORT_{option.upper()}", value) for option, value in options.items()]
    slave: Attributes = [("IFLA_INFO_SLAVE_KIND", "bridge"), ("IFLA_INFO_SLAVE_DATA", {"attrs": data})]
    return change_link(name, {"IFLA_LINKINFO": {"attrs": slave}})


def delete_link(name: str) -> Request:
    """Remove a link; its peer, if it is one of a pair, goes with it."""
    return Request(RTM_DELLINK, _link_body([("IFLA_IFNAME", name)]), f"remove interface {name}", fine=GONE)


def named_link(name: str) -> Request:
    """Ask for one link; there may be none."""
    body = _link_body([("IFLA_IFNAME", name), ("IFLA_EXT_MASK", _SKIP_STATISTICS)])
    return Request(RTM_GETLINK, body, f"find interface {name}", fine=GONE)


def links() -> Request:
    """List links, without their counters."""
    return listing(RTM_GETLINK, _link_body([("IFLA_EXT_MASK", _SKIP_STATISTICS)]), "list interfaces")


def add_address(address: IPv4Address, index: int, what: str) -> Request:
    """Give a link an address without a network: which addresses are on the link is said by routes."""
    packed = address.packed
    body = _ADDRESS.pack(AF_INET, 32, 0, SCOPE_GLOBAL, index) + _attribute(2, packed) + _attribute(1, packed)
    return Request(RTM_NEWADDR, body, f"give {what} the address {address}", CREATE | EXCLUSIVE, THERE)


def addresses() -> Request:
    """List IPv4 addresses."""
    return listing(RTM_GETADDR, _ADDRESS.pack(AF_INET, 0, 0, 0, 0), "list addresses")


def add_route(
    to: IPv4Network, index: int, source: IPv4Address | None = None, gateway: IPv4Address | None = None
) -> Request:
    """Route a network by a link, over a gateway or on the link itself; one to the same network is replaced."""
    return Request(
        RTM_NEWROUTE, _route_body(to, index, source, gateway, UNICAST), f"add the route to {to}", CREATE | REPLACE
    )


def delete_route(to: IPv4Network, index: int, gateway: IPv4Address | None = None) -> Request:
    """Remove the route to a network by this link, never one by another."""
    return Request(RTM_DELROUTE, _route_body(to, index, None, gateway, 0), f"remove the route to {to}", fine=GONE)


def routes() -> Request:
    """List IPv4 routes of all tables."""
    return listing(RTM_GETROUTE, _ROUTE.pack(AF_INET, 0, 0, 0, 0, 0, 0, 0, 0), "list routes")


def add_neighbour(address: IPv4Address, index: int) -> Request:
    """Tell the MAC of an address for good: nobody asks for it, and a bridge answers those who do."""
    body = _neighbour_body(AF_INET, index, _PERMANENT, 0) + _attribute(1, address.packed) + _hardware(mac(address))
    return Request(RTM_NEWNEIGH, body, f"tell the MAC of {address}", CREATE | REPLACE)


def delete_neighbour(address: IPv4Address, index: int) -> Request:
    """Forget the MAC of an address."""
    body = _neighbour_body(AF_INET, index, 0, 0) + _attribute(1, address.packed)
    return Request(RTM_DELNEIGH, body, f"forget the MAC of {address}", fine=GONE)


def add_port_of(hardware: str, index: int) -> Request:
    """Tell a bridge by which of its ports a MAC is reached; not learned, so nobody else can claim it."""
    body = _neighbour_body(AF_BRIDGE, index, _NOARP, NTF_MASTER) + _hardware(hardware)
    return Request(RTM_NEWNEIGH, body, f"tell the bridge the port of {hardware}", CREATE | REPLACE)


def add_forward(forward: Forward, bridge_index: int, vxlan_index: int) -> Iterator[Request]:
    """Send frames for a MAC to a peer. The VXLAN device's entry comes last: it is the one observed."""
    known = _address_of(forward)
    if known:
        yield add_neighbour(known, bridge_index)
        yield add_port_of(forward.mac, vxlan_index)
    body = _neighbour_body(AF_BRIDGE, vxlan_index, _PERMANENT, NTF_SELF) + _destination(forward)
    how = CREATE | (APPEND if forward.mac == FLOOD else REPLACE)
    yield Request(RTM_NEWNEIGH, body, f"forward {forward.mac} to {forward.peer}", how, THERE)


def delete_forward(forward: Forward, bridge_index: int, vxlan_index: int) -> Iterator[Request]:
    """Send frames for a MAC to a peer no longer."""
    known = _address_of(forward)
    if known:
        yield delete_neighbour(known, bridge_index)
        body = _neighbour_body(AF_BRIDGE, vxlan_index, 0, NTF_MASTER) + _hardware(forward.mac)
        yield Request(RTM_DELNEIGH, body, f"tell the bridge no port of {forward.mac}", fine=GONE)
    body = _neighbour_body(AF_BRIDGE, vxlan_index, 0, NTF_SELF) + _destination(forward)
    yield Request(RTM_DELNEIGH, body, f"forward {forward.mac} to {forward.peer} no longer", fine=GONE)


def forwards() -> Request:
    """List the entries of all forwarding tables."""
    return listing(RTM_GETNEIGH, _neighbour_body(AF_BRIDGE, 0, 0, 0), "list forwarding entries")


def _new_link(name: str, kind: str, data: Attributes, more: Attributes) -> Request:
    info: Attributes = [("IFLA_INFO_KIND", kind), ("IFLA_INFO_DATA", {"attrs": data})]
    body = _link_body([("IFLA_IFNAME", name), *more, ("IFLA_LINKINFO", {"attrs": info})])
    return Request(RTM_NEWLINK, body, f"make {kind} {name}", CREATE | EXCLUSIVE)


def _link_body(attributes: Attributes, up: bool = False) -> bytes:
    message = ifinfmsg()
    message["flags"] = message["change"] = UP if up else 0
    message["attrs"] = attributes
    message.encode()
    return bytes(message.data[16:])


def _route_body(
    to: IPv4Network, index: int, source: IPv4Address | None, gateway: IPv4Address | None, kind: int
) -> bytes:
    scope = SCOPE_GLOBAL if gateway else SCOPE_LINK
    body = _ROUTE.pack(AF_INET, to.prefixlen, 0, 0, MAIN_TABLE, PROTOCOL_STATIC, scope, kind, 0)
    if to != _ANY:
        body += _attribute(1, to.network_address.packed)
    body += _attribute(4, struct.pack("=i", index))
    if gateway:
        body += _attribute(5, gateway.packed)
    return body + (_attribute(7, source.packed) if source else b"")


def _neighbour_body(family: int, index: int, state: int, flags: int) -> bytes:
    return _NEIGHBOUR.pack(family, index, state, flags, 0)


def _attribute(kind: int, value: bytes) -> bytes:
    padding = -len(value) % 4
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(padding)


def _hardware(address: str) -> bytes:
    return _attribute(2, bytes.fromhex(address.replace(":", "")))


def _destination(forward: Forward) -> bytes:
    return _hardware(forward.mac) + _attribute(1, forward.peer.packed)


def _address_of(forward: Forward) -> IPv4Address | None:
    """Return the address a MAC was made from; none for FLOOD."""
    if forward.mac == FLOOD:
        return None
    address = IPv4Address(bytes.fromhex(forward.mac.replace(":", ""))[2:])
    return address if mac(address) == forward.mac else None
