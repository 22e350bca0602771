"""IPv6 of private networks: ranges that overlap, have no room or are somebody else's, and hosts that have no IPv6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv6Network
from typing import Any

from isthmus.filters.drivers.ranges import overlaps
from isthmus.filters.network.interfaces import host_interfaces
from isthmus.filters.validate.site import Site
from isthmus.model.networks.ipv6 import MTU_MIN, PREFIX_MAX, UNIQUE_LOCAL
from isthmus.model.networks.wireguard import OVERHEAD
from isthmus.model.node_network import LEG, VXLAN_OVERHEAD

RANGE, MTU = "network_ipv6_range", "network_mtu"
# RFC 4193, 3: what a site has of its own.
_PREFIX_MIN = 48
_CHOOSE = "write fd, ten hexadecimal digits by chance (RFC 4193, 3.2.2) and ::/48, as fd12:3456:789a::/48"


def ipv6_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the range."""
    declared = site.shared(RANGE)
    if not declared:
        return
    try:
        pods = IPv6Network(str(declared))
    except ValueError:
        yield site.problem(f"{RANGE} {declared} is no IPv6 network", _CHOOSE, RANGE)
        return
    if not pods.subnet_of(UNIQUE_LOCAL):
        why = f"is not within {UNIQUE_LOCAL}, and nothing leads from pods to a range that others route"
        yield site.problem(f"{RANGE} {pods} {why}", _CHOOSE, RANGE)
        return
    if not _PREFIX_MIN <= pods.prefixlen <= PREFIX_MAX:
        why = f"is no prefix of {_PREFIX_MIN} to {PREFIX_MAX} bits, behind which an IPv4 address has room"
        yield site.problem(f"{RANGE} {pods} {why}", "use a /48 or /64 of the site's own", RANGE)
    yield from overlaps(site, RANGE, pods)
    mtu = site.shared(MTU)
    if isinstance(mtu, int) and 0 < mtu < MTU_MIN:
        yield site.problem(
            f"{MTU} {mtu} is too little for IPv6, and {RANGE} is set",
            f"raise it to {MTU_MIN} or more, or set it to 0 for what the hosts carry",
            MTU,
            RANGE,
        )


def network_ipv6_problems(
    facts: Mapping[str, Any], address: str, ipv6_range: str, has_ipv6: bool, encrypts: bool = False
) -> list[str]:
    """Return why a host's pods cannot have IPv6.

    Args:
        facts: Ansible's, of its interfaces.
        address: the host's on the cluster's network.
        ipv6_range: all IPv6 addresses of pods; empty where they have none.
        has_ipv6: whether the host's kernel has IPv6.
        encrypts: whether packets between hosts are encrypted, and longer.
    """
    if not ipv6_range:
        return []
    pods = IPv6Network(ipv6_range)
    found = host_interfaces(facts)
    problems = [
        f"{each['device']} ({own['address']}) lies in {RANGE} {pods}; choose another range"
        for each in found
        if not str(each.get("device", "")).startswith(LEG)
        for own in each.get("ipv6") or ()
        if IPv6Network(f"{own['address']}/{own.get('prefix', 128)}", strict=False).overlaps(pods)
    ]
    if not has_ipv6:
        problems.append(f"its kernel has no IPv6; boot it without ipv6.disable=1, or unset {RANGE}")
    for each in found:
        room = int(each.get("mtu", 0)) - VXLAN_OVERHEAD - (OVERHEAD if encrypts else 0)
        if (each.get("ipv4") or {}).get("address") == address and room < MTU_MIN:
            problems.append(
                f"{each['device']} carries {each['mtu']} bytes, {room} for a pod, and IPv6 needs {MTU_MIN};"
                f" raise the interface's, or unset {RANGE}"
            )
    return problems


FILTERS: dict[str, Callable[..., object]] = {"network_ipv6_problems": network_ipv6_problems}
