"""IPv6 addresses of private networks: each goes with an IPv4 one and follows from it, so nobody keeps or gives any.

The last 32 bits are the IPv4 address, what comes before them is the beginning of the cluster's range. So what is true
of IPv4 addresses is true of these: users' blocks do not overlap, and an address is free when the IPv4 one is.
`fd12:3456:789a::10.64.0.3` is a way to write one (RFC 4291, 2.2).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

# Of a range: what is left is an IPv4 address.
PREFIX_MAX = 96
# RFC 8200, 5: what carries less has no IPv6.
MTU_MIN = 1280
# RFC 4193, 3.1: addresses of a site's own, which nobody else routes.
UNIQUE_LOCAL = IPv6Network("fd00::/8")


def prefix(range: IPv6Network) -> IPv6Network:
    """Return what all addresses of a range begin with."""
    return IPv6Network((range.network_address, PREFIX_MAX))


def beginning(address: IPv6Address) -> IPv6Network:
    """Return what an address of ours begins with."""
    return IPv6Network((int(address) >> 32 << 32, PREFIX_MAX))


def beside(prefix: IPv6Network, address: IPv4Address) -> IPv6Address:
    """Return the IPv6 address that goes with an IPv4 one."""
    return prefix[int(address)]


def block_beside(prefix: IPv6Network, block: IPv4Network) -> IPv6Network:
    """Return the IPv6 addresses that go with a block's."""
    return IPv6Network((beside(prefix, block.network_address), PREFIX_MAX + block.prefixlen))


def companion(prefix: IPv6Network, address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 one goes with; None for one of elsewhere."""
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in prefix else None
