"""The way of VXLAN's packets to a WireGuard device: a rule by their port, and a table of routes to the other nodes.

VXLAN asks the kernel's routes with protocol and port, so a rule finds its packets and no others: those of WireGuard
itself, to the same addresses, go by the main table. What the table has no route for is refused there, never sent by
the main one.

The device has an address only because the kernel drops what comes by one without (rp_filter); it is never used.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address

from isthmus.clients.netlink import links, namespaces, observe
from isthmus.clients.netlink.tables import (
    CREATE,
    EXCLUSIVE,
    PROTOCOL_STATIC,
    REPLACE,
    RTM_DELROUTE,
    RTM_GETROUTE,
    RTM_NEWROUTE,
    SCOPE_HOST,
    SCOPE_LINK,
    UNICAST,
    add_address,
)
from isthmus.clients.netlink.wire import GONE, THERE, NotThereError, Request, Wire, attributes, failure, listing
from isthmus.model.networks.wireguard import DEVICE
from isthmus.model.node_network import VXLAN_PORT

# Of the rule and the table; the main table's rule has 32766.
TABLE = PREFERENCE = VXLAN_PORT
ADDRESS = IPv4Address("127.47.89.1")
# linux/fib_rules.h, linux/rtnetlink.h
_NEW_RULE, _DELETE_RULE = 32, 33
_TO_TABLE = 1
_PRIORITY, _RULE_TABLE, _PROTOCOL, _IP_PROTOCOL, _DESTINATION_PORT = 6, 15, 21, 22, 24
_UDP, _AF_INET = 17, 2
_UNREACHABLE = 7
_RTA_DST, _RTA_OIF, _RTA_TABLE = 1, 4, 15
_HEADER = struct.Struct("=BBBBBBBBI")
_ENODEV = 19
# A packet may come by this interface although the main table's way back is another one: WireGuard has checked who
# sent it.
_SYSCTLS = {f"ipv4/conf/{DEVICE}/rp_filter": "2", f"ipv6/conf/{DEVICE}/disable_ipv6": "1"}


@dataclass(frozen=True, slots=True)
class Seen:
    """The routes of the table.

    Attributes:
        peers: other nodes that packets go to by the device.
        closed: whether everything else is refused.
    """

    peers: frozenset[IPv4Address] = frozenset()
    closed: bool = False


class Way:
    """The way in the network namespace of the thread that makes this. Every method raises NetlinkError."""

    def __init__(self, name: str = DEVICE) -> None:
        self._name = name
        self._wire = Wire()

    def close(self) -> None:
        """Let go of the kernel; what was made stays."""
        self._wire.close()

    def shut(self) -> None:
        """Let no VXLAN packet leave by the main table; nothing of this needs a device."""
        self._wire.send(_unreachable(), _rule(_NEW_RULE, CREATE | EXCLUSIVE, THERE))

    def prepare(self, mtu: int) -> None:
        """Set the device up, with its MTU and address.

        Raises:
            NotThereError: there is no device.
        """
        link = observe.link(self._wire, self._name)
        if link is None:
            raise failure(f"find interface {self._name}", _ENODEV)
        for name, value in _SYSCTLS.items():
            namespaces.sysctl(name, value)
        if link.mtu != mtu:
            self._wire.send(links.change_link(self._name, {"IFLA_MTU": mtu}))
        self._wire.send(add_address(ADDRESS, link.index, self._name, SCOPE_HOST))
        if not link.up:
            self._wire.send(links.up(link.index, self._name))

    def read(self) -> Seen:
        """Return what routes there are by the device."""
        link = observe.link(self._wire, self._name)
        index = link.index if link else 0
        found = self._wire.read(listing(RTM_GETROUTE, _HEADER.pack(_AF_INET, *[0] * 8), "list routes"), _route)
        ours = [route for route in found if route[0] == TABLE]
        return Seen(
            frozenset(to for _, kind, to, by in ours if kind == UNICAST and index and by == index),
            any(kind == _UNREACHABLE for _, kind, _, _ in ours),
        )

    def change(self, gone: Iterable[IPv4Address], new: Iterable[IPv4Address]) -> None:
        """Send packets to some nodes no longer, and to others by the device."""
        link = observe.link(self._wire, self._name)
        if link is None:
            raise failure(f"find interface {self._name}", _ENODEV)
        self._wire.send(
            *(_by(address, link.index, RTM_DELROUTE, 0, GONE) for address in gone),
            *(_by(address, link.index, RTM_NEWROUTE, CREATE | REPLACE) for address in new),
        )

    def remove(self) -> None:
        """Remove rule, routes and device: VXLAN's packets go by the main table."""
        with suppress(NotThereError):
            while True:
                self._wire.send(_rule(_DELETE_RULE, 0))
        self._wire.send(links.delete_link(self._name), _unreachable(RTM_DELROUTE, 0, GONE))


def _rule(kind: int, flags: int, fine: frozenset[int] = frozenset()) -> Request:
    body = _HEADER.pack(_AF_INET, 0, 0, 0, 0, 0, 0, _TO_TABLE, 0)
    for attribute, value in (
        (_PRIORITY, _number(PREFERENCE)),
        (_RULE_TABLE, _number(TABLE)),
        (_PROTOCOL, bytes([PROTOCOL_STATIC])),
        (_IP_PROTOCOL, bytes([_UDP])),
        (_DESTINATION_PORT, struct.pack("=HH", VXLAN_PORT, VXLAN_PORT)),
    ):
        body += _attribute(attribute, value)
    return Request(kind, body, "change the rule for VXLAN's packets", flags, fine)


def _unreachable(
    kind: int = RTM_NEWROUTE, flags: int = CREATE | REPLACE, fine: frozenset[int] = frozenset()
) -> Request:
    body = _HEADER.pack(_AF_INET, 0, 0, 0, 0, PROTOCOL_STATIC, 0, _UNREACHABLE, 0)
    return Request(kind, body + _attribute(_RTA_TABLE, _number(TABLE)), "refuse other VXLAN packets", flags, fine)


def _by(address: IPv4Address, index: int, kind: int, flags: int, fine: frozenset[int] = frozenset()) -> Request:
    body = _HEADER.pack(_AF_INET, 32, 0, 0, 0, PROTOCOL_STATIC, SCOPE_LINK, UNICAST, 0)
    for attribute, value in (
        (_RTA_DST, address.packed),
        (_RTA_OIF, _number(index)),
        (_RTA_TABLE, _number(TABLE)),
    ):
        body += _attribute(attribute, value)
    return Request(kind, body, f"change the way to {address}", flags, fine)


def _route(body: bytes) -> tuple[int, int, IPv4Address, int]:
    """Return a route's table, kind, destination and interface."""
    _, _, _, _, table, _, _, kind, _ = _HEADER.unpack_from(body)
    attrs = attributes(body[_HEADER.size :])
    by = int.from_bytes(attrs.get(_RTA_OIF, b""), sys.byteorder)
    number = int.from_bytes(attrs.get(_RTA_TABLE, bytes([table])), sys.byteorder)
    return number, kind, IPv4Address(attrs.get(_RTA_DST, bytes(4))), by


def _number(value: int) -> bytes:
    return struct.pack("=I", value)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)
