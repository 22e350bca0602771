"""Problems of Flannel's range: it overlaps another network, or is too small."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from isthmus.filters.drivers.ranges import network, overlaps
from isthmus.filters.drivers.registry import declared
from isthmus.filters.validate.site import Site

RANGE, PREFIX = "network_flannel_range", "network_flannel_prefix"
# flannel-io/flannel, pkg/subnet/config.go: at least four subnets, the first of which no node gets.
_SUBNETS_MIN_BITS, _PREFIX_MAX = 2, 30


def problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with Flannel's range."""
    given = declared(site, RANGE)
    pods = network(given)
    if pods is None:
        yield site.problem(f"{RANGE} {given} is no IPv4 network", "write it as 10.128.0.0/12", RANGE)
        return
    yield from overlaps(site, RANGE, pods)
    yield from _subnets(site, pods)


def _subnets(site: Site, pods: IPv4Network) -> Iterator[str]:
    prefix = declared(site, PREFIX)
    first = pods.prefixlen + _SUBNETS_MIN_BITS
    if not isinstance(prefix, int) or not first <= prefix <= _PREFIX_MAX:
        yield site.problem(
            f"{PREFIX} {prefix} is not within {first} and {_PREFIX_MAX}",
            f"choose one at least {_SUBNETS_MIN_BITS} above the prefix of {RANGE}",
            PREFIX,
            RANGE,
        )
        return
    members, subnets = len(site.group("network")), 2 ** (prefix - pods.prefixlen) - 1
    if members > subnets:
        yield site.problem(
            f"{RANGE} {pods} has {subnets} subnets of /{prefix} for {members} hosts",
            f"widen it, or raise {PREFIX}",
            RANGE,
            PREFIX,
        )
