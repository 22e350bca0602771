"""Whether a driver's range overlaps what else a site uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network

from isthmus.filters.drivers.registry import declared, of_site
from isthmus.filters.validate.site import Site


def network(given: object) -> IPv4Network | None:
    """Parse a network; an address is one of a single address."""
    try:
        return IPv4Network(str(given))
    except ValueError:
        return None


def overlaps(site: Site, variable: str, pods: IPv4Network) -> Iterator[str]:
    """Yield what a driver's range overlaps.

    Args:
        site: whose other networks and addresses are looked at.
        variable: that has the range.
        pods: the range.
    """
    for what, other in _others(site, variable):
        if other.overlaps(pods):
            yield site.problem(
                f"{variable} {pods} overlaps {what}", "choose a range that nothing else of the site uses", variable
            )


def _others(site: Site, variable: str) -> Iterable[tuple[str, IPv4Network]]:
    ranges = ["network_pod_range", *(name for one in of_site(site).values() for name in one.ranges if name != variable)]
    named = [(name, declared(site, name)) for name in ranges]
    named += [(host, site.read(host, "base_address")) for host in site.hosts]
    named += [("a server of network_dns_upstreams", each) for each in site.shared("network_dns_upstreams") or ()]
    lists = site.shared("apptainer_networks")
    for name, plugins in lists.items() if isinstance(lists, Mapping) else ():
        items = [item for item in plugins if isinstance(item, Mapping)] if isinstance(plugins, list) else []
        ipams = [item["ipam"] for item in items if isinstance(item.get("ipam"), Mapping)]
        named += [(f"network {name} of apptainer_networks", ipam.get("subnet")) for ipam in ipams]
    return [(f"{name} ({given})", found) for name, given in named if (found := network(given))]
