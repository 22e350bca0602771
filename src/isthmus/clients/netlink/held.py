"""Addresses that this host holds for a while, on an interface of their own: whatever is on it is ours.

Linux answers ARP for any of its addresses on any interface, so they need not be on the one that leads out. Neighbours
that knew another host by such an address learn of this one by an announcement (RFC 5227, 3).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Collection
from contextlib import suppress
from ipaddress import IPv4Address

from isthmus.clients.netlink import links, observe, tables
from isthmus.clients.netlink.observe import Seen
from isthmus.clients.netlink.wire import Wire, failure
from isthmus.model.node_network import LEG, VETH, VXLAN, mac

DEVICE = "isthmus-out"
_ENODEV = 19
_BROADCAST, _ARP, _IPV4, _REQUEST, _REPLY = b"\xff" * 6, 0x0806, 0x0800, 1, 2
_ETHERNET, _BODY = struct.Struct("!6s6sH"), struct.Struct("!HHBBH6s4s6s4s")
# How long another host may take to answer a question about an address.
ANSWER_S = 0.2


class HeldAddresses:
    """Those of this host; one thread at a time."""

    def __init__(self) -> None:
        self._wire = Wire()

    def close(self) -> None:
        """Let go of the kernel; addresses stay."""
        self._wire.close()

    def hold(self, wanted: Collection[IPv4Address]) -> bool:
        """Hold some addresses and no others; return whether that is new.

        Raises:
            NetlinkError: the kernel refused.
        """
        device = observe.link(self._wire, DEVICE)
        if not wanted:
            self._wire.send(links.delete_link(DEVICE))
            return device is not None
        if device is None or not device.up:
            self._wire.send(links.delete_link(DEVICE), links.bridge(DEVICE, mac(min(wanted))))
            device = observe.link(self._wire, DEVICE)
            if device is None:
                raise failure(f"find interface {DEVICE}", _ENODEV)
            self._wire.send(links.up(device.index, DEVICE))
        have = observe.look(self._wire).addresses.get(device.index, [])
        self._wire.send(
            *(tables.delete_address(each, device.index, DEVICE) for each in set(have) - {*wanted}),
            *(tables.add_address(each, device.index, DEVICE) for each in sorted({*wanted} - {*have})),
        )
        return set(have) != {*wanted}

    def announce(self, addresses: Collection[IPv4Address]) -> None:
        """Announce to neighbours that these addresses are here, on the links that the addresses are of.

        Raises:
            OSError: a link took no frame.
        """
        seen = observe.look(self._wire)
        for address in addresses:
            for name, hardware in _links_of(seen, address):
                with _open(name) as link:
                    link.send(_question(hardware, address, address))

    def reaches(self, addresses: Collection[IPv4Address]) -> bool:
        """Return whether each address is of a link that has a carrier."""
        seen = observe.look(self._wire)
        return all(any(seen.links[name].carrier for name, _ in _links_of(seen, address)) for address in addresses)

    def is_elsewhere(self, address: IPv4Address) -> bool:
        """Return whether another host says that it has an address (RFC 5227, 2.1.1).

        Raises:
            OSError: a link took no frame.
        """
        seen = observe.look(self._wire)
        return any(_is_answered(name, hardware, address) for name, hardware in _links_of(seen, address))


def _links_of(seen: Seen, address: IPv4Address) -> list[tuple[str, bytes]]:
    """Return name and MAC of the interfaces whose network an address is in."""
    return [
        (link.name, bytes.fromhex(link.hardware.replace(":", "")))
        for link in seen.links.values()
        if link.up
        and link.hardware
        and not link.name.startswith((LEG, VXLAN, VETH, DEVICE))
        and any(not route.gateway and address in route.to for route in seen.routes.get(link.index, []))
    ]


def _open(name: str) -> socket.socket:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ARP))
    link.bind((name, _ARP))
    return link


def _question(hardware: bytes, sender: IPv4Address, asked: IPv4Address) -> bytes:
    head = _ETHERNET.pack(_BROADCAST, hardware, _ARP)
    return head + _BODY.pack(1, _IPV4, 6, 4, _REQUEST, hardware, sender.packed, bytes(6), asked.packed)


def _is_answered(name: str, hardware: bytes, address: IPv4Address) -> bool:
    until = time.monotonic() + ANSWER_S
    with _open(name) as link, suppress(TimeoutError):
        # From nobody's address: nobody learns anything by it.
        link.send(_question(hardware, IPv4Address(0), address))
        while (left_s := until - time.monotonic()) > 0:
            link.settimeout(left_s)
            frame = link.recv(99)
            if len(frame) >= _ETHERNET.size + _BODY.size:
                *_, operation, sender, at, _, _ = _BODY.unpack_from(frame, _ETHERNET.size)
                if operation == _REPLY and at == address.packed and sender != hardware:
                    return True
    return False
