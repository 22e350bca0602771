"""Requests of rtnetlink(7) about interfaces, and the interfaces that the kernel reports.

Their attributes are deeply nested; pyroute2 knows them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from isthmus.clients.netlink.wire import GONE, HEADER, THERE, Request, listing
from isthmus.model.node_network import VXLAN_PORT

# linux/rtnetlink.h, linux/if_link.h
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
EXCLUSIVE, CREATE = 0x200, 0x400
UP, RUNNING = 1, 0x40
_SKIP_STATISTICS = 1 << 3
_LINK = struct.Struct("=BxHiII")
Attributes = list[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Link:
    """An interface, as far as it matters here."""

    index: int
    name: str
    mtu: int
    up: bool
    carrier: bool
    master: int
    alias: str
    hardware: str
    local: str


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


def wireguard(name: str) -> Request:
    """Make a WireGuard device; one that is there stays."""
    made = _new_link(name, "wireguard", [], [])
    return Request(made.type, made.body, made.what, made.flags, THERE)


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


def read_link(body: bytes) -> Link:
    """Decode an interface."""
    message = ifinfmsg(HEADER.pack(HEADER.size + len(body), RTM_NEWLINK, 0, 0, 0) + body)
    message.decode()
    data = message.get_nested("IFLA_LINKINFO", "IFLA_INFO_DATA")
    local = data.get_attr("IFLA_VXLAN_LOCAL") if hasattr(data, "get_attr") else None
    return Link(
        index=message["index"],
        name=message.get_attr("IFLA_IFNAME"),
        mtu=message.get_attr("IFLA_MTU") or 0,
        up=bool(message["flags"] & UP),
        carrier=bool(message["flags"] & RUNNING),
        master=message.get_attr("IFLA_MASTER") or 0,
        alias=message.get_attr("IFLA_IFALIAS") or "",
        hardware=message.get_attr("IFLA_ADDRESS") or "",
        local=local or "",
    )


def _new_link(name: str, kind: str, data: Attributes, more: Attributes) -> Request:
    info: Attributes = [("IFLA_INFO_KIND", kind), *([("IFLA_INFO_DATA", {"attrs": data})] if data else [])]
    body = _link_body([("IFLA_IFNAME", name), *more, ("IFLA_LINKINFO", {"attrs": info})])
    return Request(RTM_NEWLINK, body, f"make {kind} {name}", CREATE | EXCLUSIVE)


def _link_body(attributes: Attributes, up: bool = False) -> bytes:
    message = ifinfmsg()
    message["flags"] = message["change"] = UP if up else 0
    message["attrs"] = attributes
    message.encode()
    return bytes(message.data[HEADER.size :])
