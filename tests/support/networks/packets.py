"""Frames and packets by hand, for those who pretend to be somebody else."""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address, IPv6Address

ARP, IPV4, IPV6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100


def ethernet(target: str, sender: str, kind: int, payload: bytes) -> bytes:
    """Return a frame between two MACs."""
    macs = b"".join(bytes.fromhex(each.replace(":", "")) for each in (target, sender))
    return macs + struct.pack("!H", kind) + payload


def udp(sender: IPv4Address, target: IPv4Address, port: int, data: bytes) -> bytes:
    """Return an IPv4 packet; its UDP part has no checksum, which IPv4 allows."""
    return _ipv4(sender, target, socket.IPPROTO_UDP, struct.pack("!HHHH", port, port, 8 + len(data), 0) + data)


def udp6(sender: IPv6Address, target: IPv6Address, port: int, data: bytes) -> bytes:
    """Return an IPv6 packet."""
    head = struct.pack("!HHHH", port, port, 8 + len(data), 0)
    return ipv6(sender, target, socket.IPPROTO_UDP, _summed(sender, target, socket.IPPROTO_UDP, head + data, 6))


def neighbour(kind: int, sender: IPv6Address, target: IPv6Address, about: IPv6Address, option: bytes = b"") -> bytes:
    """Return a message of neighbour discovery (RFC 4861, 4.3 and 4.4): 135 solicits, 136 advertises."""
    flags = 0x60000000 if kind == 136 else 0
    return icmpv6(kind, sender, target, struct.pack("!I", flags) + about.packed + option)


def link_layer(kind: int, mac: str) -> bytes:
    """Return the option with a MAC (RFC 4861, 4.6.1): of kind 1 the source's, of kind 2 the target's."""
    return bytes([kind, 1]) + bytes.fromhex(mac.replace(":", ""))


def icmpv6(kind: int, sender: IPv6Address, target: IPv6Address, body: bytes, before: bytes = b"") -> bytes:
    """Return an ICMPv6 message with a right checksum, perhaps behind a header of options."""
    message = _summed(sender, target, socket.IPPROTO_ICMPV6, struct.pack("!BBH", kind, 0, 0) + body, 2)
    return ipv6(sender, target, 0 if before else socket.IPPROTO_ICMPV6, before + message)


def ipv6(sender: IPv6Address, target: IPv6Address, protocol: int, data: bytes) -> bytes:
    """Return an IPv6 packet as from a neighbour."""
    return struct.pack("!IHBB", 6 << 28, len(data), protocol, 255) + sender.packed + target.packed + data


def _summed(sender: IPv6Address, target: IPv6Address, protocol: int, data: bytes, at: int) -> bytes:
    pseudo = sender.packed + target.packed + struct.pack("!II", len(data), protocol) + data + bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:at] + struct.pack("!H", ~total & 0xFFFF) + data[at + 2 :]


def tcp_reset(sender: IPv4Address, target: IPv4Address, port: int) -> bytes:
    """Return an IPv4 packet that ends a TCP connection that is none."""
    return _ipv4(sender, target, socket.IPPROTO_TCP, struct.pack("!HHIIBBHHH", port, port, 1, 1, 5 << 4, 4, 0, 0, 0))


def _ipv4(sender: IPv4Address, target: IPv4Address, protocol: int, data: bytes) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0) + sender.packed + target.packed
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:] + data


def arp_reply(sender_mac: str, sender: IPv4Address, target_mac: str, target: IPv4Address) -> bytes:
    """Return what claims that an address has a MAC."""
    macs = [bytes.fromhex(each.replace(":", "")) for each in (sender_mac, target_mac)]
    return struct.pack("!HHBBH", 1, IPV4, 6, 4, 2) + macs[0] + sender.packed + macs[1] + target.packed


def vxlan(vni: int, frame: bytes) -> bytes:
    """Return what a VXLAN packet carries after its UDP header (RFC 7348, 5)."""
    return struct.pack("!II", 0x08000000, vni << 8) + frame
