"""The kernel's WireGuard, by generic netlink (linux/wireguard.h)."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Address
from itertools import islice

from isthmus.clients.netlink import links
from isthmus.clients.netlink.wire import NotSupportedError, NotThereError, Request, Wire, attributes, listing
from isthmus.clients.wireguard.device import WireGuardError
from isthmus.model.networks.wireguard import DEVICE, Device, Peer

# linux/netlink.h, linux/genetlink.h
_GENERIC, _CONTROL, _GET_FAMILY = 16, 16, 3
_FAMILY_ID, _FAMILY_NAME = 1, 2
_NESTED = 0x8000
_COMMAND = struct.Struct("=BBxx")
# linux/wireguard.h
_NAME = "wireguard"
_GET, _SET = 0, 1
_IFNAME, _PRIVATE, _PUBLIC, _PORT, _PEERS = 2, 3, 4, 6, 8
_KEY, _FLAGS, _ENDPOINT, _KEEPALIVE, _HANDSHAKE, _ALLOWED = 1, 3, 4, 5, 6, 9
_REMOVE, _REPLACE_ALLOWED, _UPDATE_ONLY = 1, 2, 4
_FAMILY, _ADDRESS, _MASK = 1, 2, 3
_SOCKADDR = struct.Struct(">H4s8x")
_SECONDS = struct.Struct("=q")
# A peer takes some 110 bytes, a message a page or so.
_PEERS_AT_ONCE = 50
REMEDY = (
    "this node's kernel has no WireGuard: install the kernel's module (Debian: the package linux-image of the running"
    " kernel, then modprobe wireguard), or set network_wireguard_program: wireguard-go, or network_encryption: none"
)


class KernelTunnel:
    """The device of the network namespace of the thread that makes this.

    Args:
        name: of the interface.
    """

    def __init__(self, name: str = DEVICE) -> None:
        self._name = name
        self._routing, self._generic = Wire(), Wire(_GENERIC)
        self._family = 0

    def read(self) -> Device | None:
        """See Tunnel."""
        with suppress(NotThereError):
            asked = listing(self._id, _COMMAND.pack(_GET, 1) + self._named(), f"read {self._name}")
            return _device(self._generic.read(asked, lambda body: attributes(body[_COMMAND.size :])))
        return None

    def make(self) -> None:
        """See Tunnel.

        Raises:
            WireGuardError: the kernel has none.
        """
        try:
            self._routing.send(links.wireguard(self._name))
        except NotSupportedError as error:
            raise WireGuardError(REMEDY) from error

    def set_key(self, private: bytes, port: int) -> None:
        """See Tunnel."""
        self._set("set the key", _attribute(_PRIVATE, private) + _attribute(_PORT, struct.pack("=H", port)))

    def change(self, gone: Iterable[str], new: Iterable[Peer]) -> None:
        """See Tunnel."""
        self._set_peers("remove peers", (_peer(key, _REMOVE) for key in gone))
        self._set_peers("set peers", map(_added, new))

    def wake(self, keys: Iterable[str]) -> None:
        """See Tunnel; a keepalive is sent when it is switched on."""
        known = list(keys)
        for seconds in (1, 0):
            more = _attribute(_KEEPALIVE, struct.pack("=H", seconds))
            self._set_peers("wake peers", (_peer(key, _UPDATE_ONLY, more) for key in known))

    def close(self) -> None:
        """See Tunnel."""
        self._routing.close()
        self._generic.close()

    @property
    def _id(self) -> int:
        """The number that this kernel gives WireGuard's messages."""
        if not self._family:
            body = _COMMAND.pack(_GET_FAMILY, 1) + _attribute(_FAMILY_NAME, f"{_NAME}\0".encode())
            asked = Request(_CONTROL, body, f"find {_NAME}")
            (found,) = self._generic.read(asked, lambda answer: attributes(answer[_COMMAND.size :]))
            (self._family,) = struct.unpack("=H", found[_FAMILY_ID])
        return self._family

    def _named(self) -> bytes:
        return _attribute(_IFNAME, f"{self._name}\0".encode())

    def _set(self, what: str, *parts: bytes) -> None:
        body = _COMMAND.pack(_SET, 1) + self._named() + b"".join(parts)
        self._generic.send(Request(self._id, body, f"{what} of {self._name}"))

    def _set_peers(self, what: str, peers: Iterator[bytes]) -> None:
        while some := list(islice(peers, _PEERS_AT_ONCE)):
            self._set(what, _nested(_PEERS, *(_nested(0, peer) for peer in some)))


def _device(messages: list[dict[int, bytes]]) -> Device:
    """Put together what the kernel splits; the keys and the port are in the first message alone."""
    public, port, peers, handshakes = "", 0, {}, {}
    for message in messages:
        if any(message.get(_PUBLIC, b"")):
            public = _text(message[_PUBLIC])
        if _PORT in message:
            (port,) = struct.unpack("=H", message[_PORT])
        for each in _parts(message.get(_PEERS, b"")):
            peer = attributes(each)
            key = _text(peer[_KEY])
            peers[key] = _read_peer(key, peer)
            (seconds,) = _SECONDS.unpack_from(peer.get(_HANDSHAKE, bytes(_SECONDS.size)))
            if seconds:
                handshakes[key] = seconds
    return Device(public, port, peers, handshakes)


def _read_peer(key: str, peer: dict[int, bytes]) -> Peer:
    """Read a peer; one of another shape than ours has no address, and is set again."""
    allowed = [attributes(each) for each in _parts(peer.get(_ALLOWED, b""))]
    endpoint = peer.get(_ENDPOINT, b"")
    if len(endpoint) != 2 + _SOCKADDR.size or len(allowed) != 1 or allowed[0].get(_MASK) != b"\x20":
        return Peer(key, IPv4Address(0), 0)
    port, _ = _SOCKADDR.unpack_from(endpoint, 2)
    return Peer(key, IPv4Address(allowed[0][_ADDRESS]), port)


def _added(peer: Peer) -> bytes:
    endpoint = struct.pack("=H", socket.AF_INET) + _SOCKADDR.pack(peer.port, peer.address.packed)
    allowed = (
        _attribute(_FAMILY, struct.pack("=H", socket.AF_INET))
        + _attribute(_ADDRESS, peer.address.packed)
        + _attribute(_MASK, b"\x20")
    )
    more = _attribute(_ENDPOINT, endpoint) + _nested(_ALLOWED, _nested(0, allowed))
    return _peer(peer.public_key, _REPLACE_ALLOWED, more)


def _peer(key: str, flags: int, more: bytes = b"") -> bytes:
    return _attribute(_KEY, base64.b64decode(key)) + _attribute(_FLAGS, struct.pack("=I", flags)) + more


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _parts(data: bytes) -> Iterator[bytes]:
    """Yield the values of a list, whose members all have one type."""
    at = 0
    while at + 4 <= len(data):
        length, _ = struct.unpack_from("=HH", data, at)
        yield data[at + 4 : at + length]
        at += max((length + 3) & ~3, 4)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def _nested(kind: int, *parts: bytes) -> bytes:
    return _attribute(kind | _NESTED, b"".join(parts))
