"""The nodes of a site, the same on each provider: kinds with counts, and the hosts and groups that follow from them.

A kind is an inventory group, so that a partition can name it, whatever the provider's machine type:

    nodes:
      ctl: {group: controller, at: 10}
      login: {group: login, at: 11}
      c: {group: compute, count: 2, at: 21}

defines ctl, login, c1 and c2. `at` is the host part of the first one's address, where the provider lets addresses be
chosen: names and addresses are known before anything is created, and a kind that grows moves no other. A compute kind
with `cloud: true` has nodes that Slurm starts when jobs wait and deletes when they are idle: no playbook visits them,
they join by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import pairwise
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.suggest import check_keys, unknown

PARTS = ("controller", "login", "compute")
PREFIX = "provider_"
# Compute nodes that no playbook visits: they join by themselves.
JOINING = "joining"
_KEYS = ("group", "count", "at", "vars", "cloud")
_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,40}[a-z])?")
# The first addresses of a subnet belong to the gateway and the cloud.
_FIRST_AT = 4
_MOST_NODES = 4096


@dataclass(frozen=True)
class Kind:
    """Equal nodes.

    Attributes:
        name: of the kind, and of its group where it is numbered.
        part: controller, login or compute.
        count: None for one node with the kind's own name.
        at: host part of the first one's address; 0 where the provider chooses.
        variables: of the inventory, for each of its nodes.
        cloud: whether Slurm starts and deletes them as jobs need them.
    """

    name: str
    part: str
    count: int | None
    at: int
    variables: Mapping[str, Any]
    cloud: bool = False

    @property
    def nodes(self) -> list[str]:
        """Return host names, in order."""
        return [self.name] if self.count is None else [f"{self.name}{number}" for number in range(1, self.count + 1)]

    @property
    def groups(self) -> list[str]:
        """Return the inventory groups of its nodes; a single node's name is no group."""
        part = JOINING if self.cloud else self.part
        return [part] if self.count is None or self.name == part else [part, self.name]

    def addresses(self, network: IPv4Network) -> dict[str, str]:
        """Return node -> its address in the subnet.

        Raises:
            InputError: some are outside the subnet.
        """
        last = self.at + len(self.nodes) - 1
        if not _FIRST_AT <= self.at <= last <= network.num_addresses - 2:
            bounds = f"{_FIRST_AT} and {network.num_addresses - 2}"
            raise InputError(
                f"nodes of kind {self.name} would have host parts {self.at} to {last} in {network}",
                f"let `at` and `count` stay within {bounds}, or give a larger subnet",
            )
        return {node: str(network.network_address + self.at + place) for place, node in enumerate(self.nodes)}


def node_kinds(nodes: Mapping[str, Any]) -> list[Kind]:
    """Parse the site's `nodes`.

    Raises:
        InputError: for the first thing that is wrong.
    """
    kinds = [_kind(str(name), given) for name, given in nodes.items()]
    _refuse_same_names(kinds)
    _refuse_same_places(kinds)
    for part, least in (("controller", 1), ("compute", 1)):
        # What a cloud node is made of is read of a node that is there.
        if sum(len(kind.nodes) for kind in kinds if kind.part == part and not kind.cloud) < least:
            what = f"nodes: no kind of node has group {part}"
            raise InputError(what, f"add one without `cloud`, e.g. {part[:4]}: {{group: {part}}}")
    return kinds


def _kind(name: str, given: Any) -> Kind:
    if not _LABEL.fullmatch(name):
        raise InputError(
            f"nodes: {name!r} is no name for a kind of node", "use letters and '-', numbers are added to it"
        )
    if not isinstance(given, Mapping):
        raise InputError(f"nodes: {name} is {given!r}", f"write e.g. {name}: {{group: compute, count: 2, at: 21}}")
    check_keys(f"nodes.{name}", given, _KEYS, ("group",))
    if given["group"] not in PARTS:
        raise unknown(f"group of nodes.{name}", str(given["group"]), PARTS)
    variables = given.get("vars") or {}
    if not isinstance(variables, Mapping):
        raise InputError(f"nodes.{name}.vars is {variables!r}", "write variables of the inventory: {slurm_node: {...}}")
    count = _number(name, "count", given.get("count"))
    cloud = _cloud(name, given)
    return Kind(name, given["group"], count, _number(name, "at", given.get("at")) or 0, dict(variables), cloud)


def _cloud(kind: str, given: Mapping[str, Any]) -> bool:
    cloud = given.get("cloud", False)
    if not isinstance(cloud, bool):
        raise InputError(f"nodes.{kind}.cloud is {cloud!r}", "write true or false")
    if cloud and (given["group"] != "compute" or given.get("count") is None):
        raise InputError(
            f"nodes.{kind} has cloud: true", "only compute nodes with a `count` come and go with jobs; take it out"
        )
    return cloud


def _number(kind: str, key: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_NODES:
        raise InputError(f"nodes.{kind}.{key} is {value!r}", f"give a whole number from 0 to {_MOST_NODES}")
    return value


def _refuse_same_names(kinds: Iterable[Kind]) -> None:
    owners: dict[str, str] = {}
    for kind in kinds:
        for node in kind.nodes:
            if owners.setdefault(node, kind.name) != kind.name:
                raise InputError(f"nodes: kinds {owners[node]} and {kind.name} both have {node}", "rename one of them")


def _refuse_same_places(kinds: Iterable[Kind]) -> None:
    placed = sorted((kind for kind in kinds if kind.at), key=lambda kind: kind.at)
    for before, after in pairwise(placed):
        free = before.at + len(before.nodes)
        if free > after.at:
            raise InputError(
                f"nodes: {before.name} has the addresses {before.at} to {free - 1}, {after.name} begins at {after.at}",
                f"let {after.name} begin at {free} or later",
            )


def provider_name(groups: Mapping[str, Iterable[str]]) -> str:
    """Return the provider that creates this inventory's nodes; "" for hosts that are there already.

    Raises:
        InputError: the inventory has nodes of two providers.
    """
    found = sorted(name.removeprefix(PREFIX) for name, hosts in groups.items() if name.startswith(PREFIX) and [*hosts])
    if len(found) > 1:
        raise InputError(f"the inventory has nodes of {' and of '.join(found)}", "give each provider its own inventory")
    return found[0] if found else ""


FILTERS: dict[str, Callable[..., object]] = {"provider_name": provider_name}
