"""Pod networks: ranges that overlap what exists or are too small, and names of drivers, users and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from isthmus.filters.drivers.registry import DRIVERS, chosen, of_site
from isthmus.filters.errors import InputError
from isthmus.filters.network.encryption import encryption_problems
from isthmus.filters.network.ipv6 import ipv6_problems
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site
from isthmus.model.network import Driver, label

RANGE = "network_pod_range"
DEFAULT = "network_default_driver"
BLOCK = "network_block_prefix"
# RFC 791: the size that every host must accept unfragmented; RFC 7348 adds 50 bytes to each packet of a pod.
MTU_MIN = 576
MTU_MAX = 65_485
# The smallest block: two pods, two legs, network and broadcast address.
BLOCK_MAX = 29
VNI_MAX = 2**24 - 1


def network_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with ranges, drivers and rules."""
    yield from _ranges(site)
    yield from _identifiers(site)
    yield from _mtu(site)
    yield from _labels(site)
    yield from _drivers(site)
    for definition in of_site(site).values():
        yield from definition.problems(site)
    yield from _egress(site)
    yield from _addresses(site)
    yield from encryption_problems(site)
    yield from ipv6_problems(site)


def _ranges(site: Site) -> Iterator[str]:
    declared = site.shared(RANGE)
    pods = _network(declared)
    if declared is None:
        return
    if pods is None:
        yield site.problem(f"{RANGE} {declared} is no IPv4 network", "write it as 10.64.0.0/11", RANGE)
        return
    yield from _hosts_within(site, pods)
    yield from _blocks(site, pods)


def _hosts_within(site: Site, pods: IPv4Network) -> Iterator[str]:
    for host in site.hosts:
        address = _address(site.read(host, "base_address"))
        if address is not None and address in pods:
            yield site.problem(
                f"{RANGE} {pods} contains {host} ({address})",
                "choose a range that neither hosts nor other networks of the site use",
                RANGE,
                "ansible_host",
                value=str(address),
            )


def _blocks(site: Site, pods: IPv4Network) -> Iterator[str]:
    prefix = site.shared(BLOCK)
    if not isinstance(prefix, int):
        return
    if not pods.prefixlen <= prefix <= BLOCK_MAX:
        yield site.problem(
            f"{BLOCK} {prefix} is not within {pods.prefixlen} and {BLOCK_MAX}",
            f"choose one between the prefix of {RANGE} and {BLOCK_MAX}",
            BLOCK,
        )
        return
    users = _users(site)
    blocks = 2 ** (prefix - pods.prefixlen)
    if len(users) > blocks:
        yield site.problem(
            f"{RANGE} {pods} has {blocks} blocks of /{prefix} for {len(users)} users",
            f"widen it, or raise {BLOCK}",
            RANGE,
            BLOCK,
        )


def _identifiers(site: Site) -> Iterator[str]:
    first, last = site.shared("network_vni_first"), site.shared("network_vni_last")
    if not isinstance(first, int) or not isinstance(last, int):
        return
    if not 1 <= first <= last <= VNI_MAX or last - first + 1 < len(_users(site)):
        yield site.problem(
            f"network_vni_first {first} to network_vni_last {last} does not hold an identifier for each user",
            f"choose a range within 1 and {VNI_MAX} with as many as there are users",
            "network_vni_first",
            "network_vni_last",
        )


def _mtu(site: Site) -> Iterator[str]:
    mtu = site.shared("network_mtu")
    if isinstance(mtu, int) and mtu and not MTU_MIN <= mtu <= MTU_MAX:
        yield site.problem(
            f"network_mtu {mtu} cannot work",
            f"choose one within {MTU_MIN} and {MTU_MAX}, or 0 for what the hosts' interfaces carry",
            "network_mtu",
        )


def _labels(site: Site) -> Iterator[str]:
    """Yield users with equal DNS labels, who would share the names of their pods."""
    users = _users(site)
    for shared in dict.fromkeys(found for found in map(label, users) if list(map(label, users)).count(found) > 1):
        names = [name for name in users if label(name) == shared]
        # Duplicate names are refused elsewhere.
        if len(set(names)) > 1:
            yield site.problem(
                f"users {' and '.join(names)} would both be {shared} in DNS, where their pods' names are",
                "rename all but one; letters and digits must differ, '_' and '-' are the same there",
                "name",
                "base_users",
                value=names[-1],
            )


def _drivers(site: Site) -> Iterator[str]:
    present = chosen(site)
    known_drivers = [str(Driver.NONE), *present]
    if Driver.PRIVATE not in present:
        yield site.problem(f"{DRIVERS} lacks {Driver.PRIVATE}", f"add it; {DEFAULT}: none gives it to nobody", DRIVERS)
    usual = site.shared(DEFAULT)
    if usual is not None and usual not in known_drivers:
        yield site.problem_of(unknown(f"driver in {DEFAULT}", str(usual), known_drivers), DEFAULT)
    partitions = [str(each.get("name")) for each in site.shared_list("slurm_partitions")]
    for variable, known, kind in (
        ("network_partition_drivers", partitions, "partition"),
        ("network_user_drivers", _users(site), "user"),
    ):
        given = site.shared(variable)
        for name, driver in given.items() if isinstance(given, dict) else ():
            yield from _named(site, variable, f"{kind} in {variable}", str(name), known)
            yield from _named(site, variable, f"driver in {variable}", str(driver), known_drivers)
    for name in site.shared("network_admin_users") or ():
        yield from _named(site, "network_admin_users", "user in network_admin_users", str(name), _users(site))


def _egress(site: Site) -> Iterator[str]:
    for rule in site.shared_list("network_egress"):
        for name in rule.get("users") or ():
            yield from _named(site, "network_egress", "user in network_egress", str(name), _users(site))
        if "to" in rule and _network(rule["to"]) is None:
            yield site.problem(
                f"network_egress: {rule['to']} is no IPv4 network", "write it as 192.0.2.0/24", "to", value=rule["to"]
            )
        if rule.get("ports") and rule.get("protocol") not in ("tcp", "udp"):
            yield site.problem(
                "a rule of network_egress has ports and no protocol that has them",
                "add protocol: tcp or udp",
                "network_egress",
            )


def _addresses(site: Site) -> Iterator[str]:
    for declared in site.shared("network_dns_upstreams") or ():
        if _address(declared) is None:
            yield site.problem(
                f"network_dns_upstreams: {declared} is no IPv4 address",
                "give servers by address",
                "network_dns_upstreams",
            )


def _users(site: Site) -> list[str]:
    return [str(user["name"]) for user in site.shared_list("base_users") if "name" in user]


def _named(site: Site, variable: str, kind: str, name: str, known: Iterable[str]) -> Iterator[str]:
    if name not in known:
        error: InputError = unknown(kind, name, list(known))
        yield site.problem_of(error, variable)


def _network(declared: object) -> IPv4Network | None:
    try:
        return IPv4Network(str(declared))
    except ValueError:
        return None


def _address(declared: object) -> IPv4Address | None:
    try:
        return IPv4Address(str(declared))
    except AddressValueError:
        return None
