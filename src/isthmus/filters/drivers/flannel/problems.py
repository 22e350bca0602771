"""Problems of Flannel's range: it overlaps another network, or is too small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network

from isthmus.filters.drivers.registry import declared
from isthmus.filters.validate.site import Site

RANGE, PREFIX = "network_flannel_range", "network_flannel_prefix"
# flannel-io/flannel, pkg/subnet/config.go: at least four subnets, the first of which no node gets.
_SUBNETS_MIN_BITS, _PREFIX_MAX = 2, 30


def problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with Flannel's range."""
    given = declared(site, RANGE)
    pods = _network(given)
    if pods is None:
        yield site.problem(f"{RANGE} {given} is no IPv4 network", "write it as 10.128.0.0/12", RANGE)
        return
    for what, other in _others(site):
        if other.overlaps(pods):
            yield site.problem(
                f"{RANGE} {pods} overlaps {what}", "choose a range that nothing else of the site uses", RANGE
            )
    yield from _subnets(site, pods)


def _others(site: Site) -> Iterable[tuple[str, IPv4Network]]:
    """Return the site's other networks and addresses, with a name for each."""
    named = [("network_pod_range", declared(site, "network_pod_range"))]
    named += [(host, site.read(host, "base_address")) for host in site.hosts]
    named += [("a server of network_dns_upstreams", each) for each in site.shared("network_dns_upstreams") or ()]
    lists = site.shared("apptainer_networks")
    for name, plugins in lists.items() if isinstance(lists, Mapping) else ():
        items = [item for item in plugins if isinstance(item, Mapping)] if isinstance(plugins, list) else []
        ipams = [item["ipam"] for item in items if isinstance(item.get("ipam"), Mapping)]
        named += [(f"network {name} of apptainer_networks", ipam.get("subnet")) for ipam in ipams]
    return [(f"{name} ({given})", network) for name, given in named if (network := _network(given))]


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


def _network(given: object) -> IPv4Network | None:
    """Parse a network; an address is one of a single address."""
    try:
        return IPv4Network(str(given))
    except ValueError:
        return None
