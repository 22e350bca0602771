"""WireGuard between the nodes: what a node's device holds (wireguard(7)), and what identifies a node.

The device is below VXLAN: its packets are VXLAN's alone, from one node's own address to another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address

DEVICE = "iw0"
PORT = 51820
# Outer IPv4 and UDP headers, WireGuard's of a data message, and its tag.
OVERHEAD = 60
KEY_BYTES = 32
# A DNS name in a node's certificate that no server has.
_IDENTITY = "node.isthmus"


class Encryption(StrEnum):
    """The values of `network_encryption`."""

    NONE = "none"
    WIREGUARD = "wireguard"


class Program(StrEnum):
    """What runs WireGuard on a node; the values of `network_wireguard_program`."""

    KERNEL = "kernel"
    WIREGUARD_GO = "wireguard-go"


def identity(node: str) -> str:
    """Return the name that a node's certificate has."""
    return f"{node}.{_IDENTITY}"


@dataclass(frozen=True, slots=True)
class Peer:
    """Another node.

    Attributes:
        public_key: base64.
        address: the node's own: where it is, and the only one its packets may be from.
        port: UDP.
    """

    public_key: str
    address: IPv4Address
    port: int = PORT


@dataclass(frozen=True, slots=True)
class Device:
    """A device as it is.

    Attributes:
        public_key: base64; empty where it has none.
        port: UDP, 0 for none.
        peers: by public key.
        handshakes: public key -> when its last handshake was, seconds since the epoch; those that had one.
    """

    public_key: str = ""
    port: int = 0
    peers: Mapping[str, Peer] = field(default_factory=dict)
    handshakes: Mapping[str, int] = field(default_factory=dict)
