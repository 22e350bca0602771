"""Whether a driver's range overlaps what else a site uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from isthmus.filters.drivers.registry import declared, of_site
from isthmus.filters.validate.site import Site


def network(given: object) -> IPv4Network | None:
    """Parse a network; an address is one of a single address."""
    try:
        return IPv4Network(str(given))
    except ValueError:
        return None


def overlaps(site: Site, variable: str, pods: IPv4Network | IPv6Network) -> Iterator[str]:
    """Yield what a driver's range overlaps.

    Args:
        site: whose other networks and addresses are looked at.
        variable: that has the range.
        pods: the range.
    """
    others: list[tuple[str, IPv4Network | IPv6Network]] = [*_others(site, variable)]
    others += _others_ipv6(site) if pods.version == 6 else []
    for what, other in others:
        if other.network_address in pods or pods.network_address in other:
            yield site.problem(
                f"{variable} {pods} overlaps {what}", "choose a range that nothing else of the site uses", variable
            )


def _others(site: Site, variable: str) -> Iterable[tuple[str, IPv4Network]]:
    ranges = ["network_pod_range", *(name for one in of_site(site).values() for name in one.ranges if name != variable)]
    named = [(name, declared(site, name)) for name in ranges]
    named += [(host, site.read(host, "base_address")) for host in site.hosts]
    named += [("a server of network_dns_upstreams", each) for each in site.shared("network_dns_upstreams") or ()]
    named += [(what, ipam.get("subnet")) for what, ipam in _ipams(site)]
    return [(f"{name} ({given})", found) for name, given in named if (found := network(given))]


def _others_ipv6(site: Site) -> Iterable[tuple[str, IPv6Network]]:
    """Return what a site may have of IPv6: hosts that the deployer reaches by it, and networks of Apptainer's."""
    named = [(host, site.read(host, "ansible_host")) for host in site.hosts]
    named += [(what, each) for what, ipam in _ipams(site) for each in (ipam.get("subnet"), *_several(ipam))]
    return [(f"{name} ({given})", found) for name, given in named if (found := _network6(given))]


def _ipams(site: Site) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lists = site.shared("apptainer_networks")
    for name, plugins in lists.items() if isinstance(lists, Mapping) else ():
        for item in plugins if isinstance(plugins, list) else ():
            if isinstance(item, Mapping) and isinstance(item.get("ipam"), Mapping):
                yield f"network {name} of apptainer_networks", item["ipam"]


def _several(ipam: Mapping[str, Any]) -> Iterator[object]:
    """Yield the subnets of `ranges` of the plugin host-local, a list of lists."""
    several = ipam.get("ranges")
    for ranges in several if isinstance(several, list) else ():
        for each in ranges if isinstance(ranges, list) else ():
            yield each.get("subnet") if isinstance(each, Mapping) else None


def _network6(given: object) -> IPv6Network | None:
    try:
        return IPv6Network(str(given))
    except ValueError:
        return None
