"""Hosts: required groups, and unique names and addresses."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address

from isthmus.filters.validate.site import Site

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def host_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the hosts; without any, that alone."""
    if not site.hosts:
        yield site.problem(
            "the inventory has no hosts",
            "pass one with -i, e.g. -i inventories/local, or begin with inventories/existing.example",
        )
        return
    yield from _groups(site)
    yield from _names(site)
    wrong_name = list(_cluster_name(site))
    # A test bed's addresses are derived from its name.
    yield from wrong_name or _addresses(site)


def _groups(site: Site) -> Iterator[str]:
    controllers = site.group("controller")
    if not controllers:
        yield site.problem("group controller has no host", "put the host of Slurm's controller into it", "controller")
    if len(controllers) > 1:
        yield site.problem(
            f"group controller has {len(controllers)} hosts: {', '.join(controllers)}",
            "keep one; there is no backup controller yet",
            "controller",
        )
    if not site.group("compute") and not site.group("joining"):
        yield site.problem("group compute has no host", "put at least one host that runs jobs into it", "compute")


def _cluster_name(site: Site) -> Iterator[str]:
    name = site.shared("cluster_name")
    if name is not None and not _LABEL.fullmatch(str(name)):
        yield site.problem(
            f"cluster_name is {name!r}",
            "use at most 63 of a-z, 0-9 and '-', with a letter or digit at both ends (NAME=... sets it too)",
            "cluster_name",
        )


def _names(site: Site) -> Iterator[str]:
    same: defaultdict[str, list[str]] = defaultdict(list)
    for host in site.hosts:
        short = host.split(".")[0].lower()
        same[short].append(host)
        if not _LABEL.fullmatch(short):
            yield site.problem(f"{host!r} is no host name", "use letters, digits and '-'", host)
    for short, hosts in same.items():
        if len(hosts) > 1:
            yield site.problem(f"hosts {' and '.join(hosts)} share the host name {short}", "rename one", hosts[-1])


def _addresses(site: Site) -> Iterator[str]:
    owners: dict[IPv4Address, str] = {}
    # A cloud assigns addresses when nodes are created.
    given_later = {*site.group("provider_parallelcluster"), *site.group("joining")}
    for host in site.hosts:
        given = site.read(host, "base_address") or site.read(host, "ansible_host")
        if not given and host in given_later:
            continue
        try:
            address = IPv4Address(str(given))
        except AddressValueError:
            what = "has no base_address" if given is None else f"has base_address {given!r}, no IPv4 address"
            remedy = "set base_address (or ansible_host) to its IPv4 address on the cluster's network"
            yield site.problem(f"host {host} {what}", remedy, host, "base_address", "ansible_host")
            continue
        owner = owners.setdefault(address, host)
        if owner != host:
            yield site.problem(
                f"hosts {owner} and {host} share the address {address}",
                "give each its own base_address",
                host,
                "base_address",
                "ansible_host",
            )
