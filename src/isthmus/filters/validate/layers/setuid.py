"""Apptainer with setuid: invalid networks, and rights of unknown users and networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

from isthmus.filters.drivers.registry import of_site
from isthmus.filters.suggest import unknown
from isthmus.filters.validate.site import Site

SETUID, NETWORKS = "apptainer_setuid", "apptainer_networks"
USERS, ALLOWED = "apptainer_net_users", "apptainer_net_networks"
# Reserved by Apptainer: none has no interface, fakeroot would be open to every user with subordinate ids.
_RESERVED = ("none", "fakeroot")
# A name is also a file name, and an item of a list in apptainer.conf.
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
# Set in apptainer.conf from the variables above.
_RULED = ("allow setuid", "allow net users", "allow net networks", "cni configuration path")


def setuid_problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the networks, with who may use them, and with what setuid rules out."""
    given: Mapping[str, Any] = site.shared(NETWORKS) or {}
    for name, plugins in given.items():
        yield from _network(site, str(name), plugins)
    for name in site.shared(ALLOWED) or ():
        networks = given or site.role_specs["apptainer"]["argument_specs"]["main"]["options"][NETWORKS]["default"]
        there = [*networks, *(name for name, driver in of_site(site).items() if driver.cni_list)]
        if name not in there:
            yield site.problem_of(unknown(f"network in {ALLOWED}", name, there), ALLOWED)
    users = _users(site)
    for name in site.shared(USERS) or ():
        if name not in users:
            yield site.problem_of(unknown(f"user in {USERS}", name, users), USERS)
    if site.shared(SETUID):
        yield from _ruled_out(site)


def _users(site: Site) -> list[str]:
    """Return the site's users, and those of a directory service with subordinate ids here."""
    present = [each for each in site.shared_list("base_users") if each.get("state", "present") == "present"]
    return [str(each["name"]) for each in present + site.shared_list("apptainer_subids")]


def _network(site: Site, name: str, plugins: Any) -> Iterator[str]:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        yield site.problem(
            f"{name!r} is no name for a network of {NETWORKS}",
            f"use a-z, 0-9, '-', '_' and '.', and none of {', '.join(_RESERVED)}",
            name,
            NETWORKS,
        )
    items = plugins if isinstance(plugins, list) else []
    if not items or not all(isinstance(item, Mapping) and item.get("type") for item in items):
        yield site.problem(
            f"network {name} of {NETWORKS} is no list of CNI plugins", "give each plugin its type", name, NETWORKS
        )
        return
    for subnet in (item["ipam"].get("subnet") for item in items if isinstance(item.get("ipam"), Mapping)):
        if subnet is not None and not _is_network(subnet):
            yield site.problem(
                f"network {name} of {NETWORKS} has the subnet {subnet!r}",
                "write an IPv4 network such as 10.22.0.0/16",
                "subnet",
                name,
                NETWORKS,
                value=subnet,
            )


def _is_network(text: Any) -> bool:
    try:
        return bool(IPv4Network(str(text)))
    except ValueError:
        return False


def _ruled_out(site: Site) -> Iterator[str]:
    if site.shared("apptainer_package_source") == "url":
        yield site.problem(
            f"{SETUID} builds a package of its own, and apptainer_package_source is url",
            "leave one of them out",
            "apptainer_package_source",
        )
    for key in site.shared("apptainer_conf") or {}:
        if key in _RULED:
            yield site.problem(
                f"apptainer_conf sets {key!r}, which follows from {SETUID} and the variables beside it",
                f"take it out; {USERS}, {ALLOWED} and {NETWORKS} say it",
                key,
                "apptainer_conf",
            )
