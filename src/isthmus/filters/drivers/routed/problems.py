"""Problems of the routed network: its range overlaps another, is too small, or hosts do not share a segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from isthmus.filters.drivers.ranges import network, overlaps
from isthmus.filters.drivers.registry import declared
from isthmus.filters.network.interfaces import host_interfaces, interface_overlap
from isthmus.filters.validate.site import Site
from isthmus.model.networks.routed import SUBNET_BITS, VETH, Plan

RANGE = "network_routed_range"


def problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the range."""
    given = declared(site, RANGE)
    pods = network(given)
    if pods is None:
        yield site.problem(f"{RANGE} {given} is no IPv4 network", "write it as 10.160.0.0/12", RANGE)
        return
    yield from overlaps(site, RANGE, pods)


def network_routed_segment(facts: Mapping[str, Any], address: str) -> str:
    """Return the network that a host's own address is in, CIDR; that of the address alone where nobody knows."""
    for each in host_interfaces(facts):
        ipv4 = each.get("ipv4") or {}
        if ipv4.get("address") == address:
            return str(IPv4Network(f"{address}/{ipv4.get('prefix', 32)}", strict=False))
    return f"{address}/32"


def network_routed_problems(facts: Mapping[str, Any], address: str, pods: str, members: Iterable[str]) -> list[str]:
    """Return why a host cannot have the routed network.

    Args:
        facts: Ansible's, of its interfaces.
        address: the host's on the cluster's network.
        pods: the range of the whole network, CIDR.
        members: addresses of all hosts of the network.
    """
    segment, wanted = IPv4Network(network_routed_segment(facts, address)), IPv4Network(pods)
    found = [
        interface_overlap(each, wanted, RANGE)
        for each in host_interfaces(facts)
        if not str(each.get("device", "")).startswith(VETH)
    ]
    found += [
        f"{member} is not on the segment {segment} of {address}; routed needs all hosts on one: take it out of"
        " network_drivers, private goes anywhere"
        for member in members
        if IPv4Address(member) not in segment
    ]
    if Plan(wanted, segment).prefix > 32 - SUBNET_BITS:
        longest = segment.prefixlen - SUBNET_BITS
        found.append(f"{RANGE} {pods} is too small for the segment {segment}; use a prefix of at most /{longest}")
    return [problem for problem in found if problem]


FILTERS: dict[str, Callable[..., object]] = {
    "network_routed_problems": network_routed_problems,
    "network_routed_segment": network_routed_segment,
}
