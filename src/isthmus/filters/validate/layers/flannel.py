"""Flannel: drivers that the cluster does not have, and a range that overlaps what exists or is too small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site
from isthmus.model.network import Driver

DRIVERS, DEFAULT = "network_drivers", "network_default_driver"
RANGE, PREFIX = "network_flannel_range", "network_flannel_prefix"
# As role network has them; what the inventory does not say is not known before the roles run.
_DEFAULTS: Mapping[str, Any] = {
    DRIVERS: [Driver.PRIVATE],
    RANGE: "10.128.0.0/12",
    PREFIX: 24,
    "network_pod_range": "10.64.0.0/11",
}
# flannel-io/flannel, pkg/subnet/config.go: at least four subnets, the first of which no node gets.
_SUBNETS_MIN_BITS, _PREFIX_MAX = 2, 30


def flannel_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with drivers and with Flannel's range."""
    present = drivers(site)
    if Driver.PRIVATE not in present:
        yield site.problem(f"{DRIVERS} lacks {Driver.PRIVATE}", f"add it; {DEFAULT}: none gives it to nobody", DRIVERS)
    declared = site.shared(DEFAULT)
    if declared is not None and declared not in ("none", *present):
        yield site.problem_of(unknown(f"driver in {DEFAULT}", str(declared), ["none", *present]), DEFAULT)
    if Driver.FLANNEL in present:
        yield from _ranges(site)
        yield from _user(site)


def drivers(site: Site) -> list[str]:
    """Return the networks that jobs may have."""
    return [str(driver) for driver in _declared(site, DRIVERS)]


def _declared(site: Site, variable: str) -> Any:
    value = site.shared(variable)
    return _DEFAULTS[variable] if value is None else value


def _ranges(site: Site) -> Iterator[str]:
    declared = _declared(site, RANGE)
    pods = _network(declared)
    if pods is None:
        yield site.problem(f"{RANGE} {declared} is no IPv4 network", "write it as 10.128.0.0/12", RANGE)
        return
    for what, other in _others(site):
        if other.overlaps(pods):
            yield site.problem(
                f"{RANGE} {pods} overlaps {what}", "choose a range that nothing else of the site uses", RANGE
            )
    yield from _subnets(site, pods)


def _others(site: Site) -> Iterable[tuple[str, IPv4Network]]:
    """Return what is known to be elsewhere, with a name for each."""
    named = [("network_pod_range", _declared(site, "network_pod_range"))]
    named += [(host, site.read(host, "base_address")) for host in site.hosts]
    named += [("a server of network_dns_upstreams", each) for each in site.shared("network_dns_upstreams") or ()]
    lists = site.shared("apptainer_networks")
    for name, plugins in lists.items() if isinstance(lists, Mapping) else ():
        items = [item for item in plugins if isinstance(item, Mapping)] if isinstance(plugins, list) else []
        ipams = [item["ipam"] for item in items if isinstance(item.get("ipam"), Mapping)]
        named += [(f"network {name} of apptainer_networks", ipam.get("subnet")) for ipam in ipams]
    return [(f"{name} ({declared})", network) for name, declared in named if (network := _network(declared))]


def _user(site: Site) -> Iterator[str]:
    users = site.shared_list("etcd_users")
    if users and Driver.FLANNEL not in [user.get("name") for user in users]:
        yield site.problem(
            f"etcd_users lacks {Driver.FLANNEL}, who is flanneld",
            "add it with readwrite on the prefix flannel/, or take the driver out of network_drivers",
            "etcd_users",
        )


def _subnets(site: Site, pods: IPv4Network) -> Iterator[str]:
    prefix = _declared(site, PREFIX)
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


def _network(declared: object) -> IPv4Network | None:
    """Read a network, or an address as one of its own."""
    try:
        return IPv4Network(str(declared))
    except ValueError:
        return None
