"""Problems of the site's own CNI plugins: variables that are missing or wrong, lists that cannot be used on a host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from isthmus.filters.drivers.ranges import network, overlaps
from isthmus.filters.drivers.registry import declared
from isthmus.filters.validate.site import Site
from isthmus.model.networks import cni
from isthmus.model.networks.cni import Rights

RANGE, LIST, FOLDER, PLUGINS = "network_cni_range", "network_cni_list", "network_cni_folder", "network_cni_plugins"
INTERFACE, GATEWAY = "network_cni_interface", "network_cni_gateway"
# What the names of all other networks' interfaces begin with.
_OURS = ("il", "ix", "iv", "ir", "iw", "if", "isthmus")
_PREFIX_MAX = 29


def problems(site: Site) -> Iterator[str]:
    """Yield what is wrong with the variables."""
    yield from _range(site)
    name, interface = declared(site, LIST), declared(site, INTERFACE)
    if not cni.is_file_name(str(name)):
        yield site.problem(
            f"{LIST} {name!r} is no name of a list of CNI plugins",
            f"name a file of {FOLDER}, such as 10-pods.conflist",
            LIST,
        )
    for variable in (FOLDER, PLUGINS):
        folder = str(declared(site, variable))
        if not folder.startswith("/") or ".." in folder.split("/"):
            yield site.problem(f"{variable} {folder} is no whole path", f"write it as {cni.FOLDER}", variable)
    if not cni.is_interface(str(interface)):
        yield site.problem(
            f"{INTERFACE} {interface!r} is no interface",
            "write it as cni0, or as veth* for all that begin so",
            INTERFACE,
        )
    elif taken := [name for name in _OURS if _overlap(str(interface), name)]:
        yield site.problem(
            f"{INTERFACE} {interface} is taken: names with {taken[0]} are another network's",
            "have the plugins use another name",
            INTERFACE,
        )


def _overlap(pattern: str, prefix: str) -> bool:
    start = pattern.removesuffix("*")
    return start.startswith(prefix) or (pattern.endswith("*") and prefix.startswith(start))


def _range(site: Site) -> Iterator[str]:
    given, gateway = declared(site, RANGE), declared(site, GATEWAY)
    pods = network(given)
    if not given or pods is None or pods.prefixlen > _PREFIX_MAX:
        yield site.problem(
            f"{RANGE} {given!r} is no range for pods",
            "write all that the plugins of all nodes give as 10.180.0.0/16",
            RANGE,
        )
        return
    yield from overlaps(site, RANGE, pods)
    if gateway and not _is_address(gateway):
        yield site.problem(f"{GATEWAY} {gateway} is no IPv4 address", "write it as 169.254.100.1", GATEWAY)


def network_cni_problems(found: Mapping[str, Any], packages: Sequence[str]) -> list[str]:
    """Return why a host cannot have the network.

    Args:
        found: of the module `network_state`: `way`, path -> owner and mode of each folder that leads to the list and
            the programs, and of the list; `programs`, the same of each program; `text`, the list; `last`, the two
            folders.
        packages: bring programs, perhaps only after this.
    """
    refused = [
        cni.rights_problem(path, Rights(*rights), is_last=path in found["last"])
        for path, rights in {**found["way"], **found["programs"]}.items()
    ]
    where = found["list"]
    if found["text"] is None:
        refused.append(f"{where} is not there; write the list of CNI plugins, as a file of root's")
        return [problem for problem in refused if problem]
    about_list = [f"{where}: {problem}" for problem in cni.list_problems(found["text"])]
    # Every pod needs that one, and Debian's package brings it.
    are_there = not packages or f"{found['plugins']}/{cni.LOOPBACK}" in found["programs"]
    if not about_list and are_there:
        named = {f"{found['plugins']}/{name}" for name in cni.programs(json.loads(found["text"]))}
        refused += [
            f"{path} is not there; install the plugin, or take it out of the list"
            for path in sorted(named - found["programs"].keys())
        ]
    return [problem for problem in [*refused, *about_list] if problem]


def _is_address(given: object) -> bool:
    try:
        IPv4Address(str(given))
    except ValueError:
        return False
    return True


FILTERS: dict[str, Callable[..., object]] = {"network_cni_problems": network_cni_problems}
