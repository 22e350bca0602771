"""Frames and packets by hand, for those who pretend to be somebody else."""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address

ARP, IPV4, IPV6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100


def ethernet(target: str, sender: str, kind: int, payload: bytes) -> bytes:
    """Return a frame between two MACs."""
    macs = b"".join(bytes.fromhex(each.replace(":", "")) for each in (target, sender))
    return macs + struct.pack("!H", kind) + payload


def udp(sender: IPv4Address, target: IPv4Address, port: int, data: bytes) -> bytes:
    """Return an IPv4 packet; its UDP part has no checksum, which IPv4 allows."""
    return _ipv4(sender, target, socket.IPPROTO_UDP, struct.pack("!HHHH", port, port, 8 + len(data), 0) + data)


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
