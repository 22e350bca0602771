"""What is wrong with a site on ParallelCluster, as far as its variables alone show.

ParallelCluster's own schema and validators report the rest (module `parallelcluster_check`); the problems here they
report not at all, only after something was created, or without a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.parallelcluster.queues import Kinds, kinds, kinds_of, logins, named_kinds
from isthmus.filters.parallelcluster.settings import Level, of_cluster, refusals

PREFIX = "provider_parallelcluster_"
# What a part must have where there is one: an empty part is none, which Ansible's own validator cannot say.
_PARTS = {
    "head": ("instance_type", "subnet"),
    "login": ("instance_type", "policy"),
    "directory": ("domain", "servers", "user", "password_secret"),
    "database": ("uri", "user", "password_secret"),
}
_NEEDED = ("region", "key_name", "bucket", "head", "kinds")
_QUEUE = re.compile(r"[a-z](?:[a-z0-9-]{0,23}[a-z0-9])?")
# Slurm's names of nodes are cut up at these.
_RESERVED = ("-st-", "-dy-")
_CLUSTER = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_NAME_MOST, _NAME_MOST_WITH_DATABASE = 60, 40
_SUBNET = re.compile(r"subnet-(?:[0-9a-f]{8}|[0-9a-f]{17})")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HEAD_S = 2100
_QUEUES_MOST = _RESOURCES_MOST = 50


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, and the keys by which its location is found, the most exact first."""

    error: InputError
    keys: tuple[str, ...]


def problems(site: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield all of them; `site` is as for `render.cluster_config`."""
    lacking = [name for name in _NEEDED if not site.get(name)]
    if lacking:
        names = ", ".join(PREFIX + name for name in lacking)
        yield _problem(f"{names} not set", "see inventories/parallelcluster", *(PREFIX + name for name in lacking))
        return
    for part, keys in _PARTS.items():
        if site[part] and (without := [key for key in keys if not site[part].get(key)]):
            yield _problem(f"{PREFIX}{part} has no {', '.join(without)}", "set it", PREFIX + part)
            return
    try:
        given = kinds(site["nodes"], site["kinds"])
    except InputError as error:
        yield Problem(error, (f"{PREFIX}kinds", "nodes"))
        return
    yield from _cluster(site)
    yield from _networks(site)
    yield from _kinds(given)
    yield from _partitions(site, given)
    yield from _slurm(site)


def _problem(what: str, remedy: str, *keys: str) -> Problem:
    return Problem(InputError(what, remedy), keys)


def _cluster(site: Mapping[str, Any]) -> Iterator[Problem]:
    name, most = str(site["cluster"]), _NAME_MOST_WITH_DATABASE if site["database"] else _NAME_MOST
    if not _CLUSTER.fullmatch(name) or len(name) > most:
        what = f"cluster_name {name!r} cannot be a ParallelCluster's"
        yield _problem(what, f"use at most {most} letters, digits and '-', a letter first", "cluster_name")
    if site.get("managed", False):
        what = "slurm_manage is true, and ParallelCluster brings a Slurm of its own"
        yield _problem(what, "set slurm_manage: false, as inventories/parallelcluster does", "slurm_manage")
    if not _BUCKET.fullmatch(str(site["bucket"])):
        what = f"{PREFIX}bucket {site['bucket']!r} is no name of a bucket"
        yield _problem(what, "write the name alone, without s3://", f"{PREFIX}bucket")
    if not 300 <= site["timeout_s"] <= _HEAD_S:
        what = f"{PREFIX}timeout_s is {site['timeout_s']}"
        yield _problem(what, f"write seconds from 300 to {_HEAD_S}, CloudFormation's patience", f"{PREFIX}timeout_s")


def _networks(site: Mapping[str, Any]) -> Iterator[Problem]:
    given = [(f"{PREFIX}head", site["head"].get("subnet"))]
    if bool(site["login"]) != bool(logins(site["nodes"])):
        setting = "set" if site["login"] else "empty"
        what = f"`nodes` has {logins(site['nodes'])} login nodes, and {PREFIX}login is {setting}"
        yield _problem(what, "say both or none", f"{PREFIX}login", "login")
    if site["login"]:
        given.append((f"{PREFIX}login", site["login"].get("subnet") or site["head"].get("subnet")))
    given += [(f"{PREFIX}kinds", subnet) for kind in site["kinds"].values() for subnet in kind.get("subnets", [])]
    for variable, subnet in given:
        if not _SUBNET.fullmatch(str(subnet)):
            yield _problem(f"{variable} has subnet {subnet!r}", "write the id of a subnet, subnet-...", variable)


def _kinds(given: Kinds) -> Iterator[Problem]:
    variable = f"{PREFIX}kinds"
    for name, kind in given.items():
        if wrong := _name_problem("kind of nodes", str(name)):
            yield Problem(wrong, (str(name), "nodes"))
        if not kind.get("instance_types"):
            yield _problem(f"kind {name} has no instance_types", f"name one or more in {variable}", str(name), variable)
        if not isinstance(kind["min"], int) or not 0 <= kind["min"] <= kind["max"]:
            what = f"kind {name} has min {kind['min']} of {kind['max']} nodes"
            yield _problem(what, "write how many always run, 0 to all", "min", str(name), variable)


def _partitions(site: Mapping[str, Any], given: Kinds) -> Iterator[Problem]:
    variable = "slurm_partitions"
    defaults = [partition["name"] for partition in site["partitions"] if partition.get("default")]
    if len(defaults) > 1:
        yield _problem(f"partitions {' and '.join(defaults)} are both default", "keep one of them", variable)
    if len(site["partitions"]) > _QUEUES_MOST or len(given) > _RESOURCES_MOST:
        what = f"{len(site['partitions'])} partitions with {len(given)} kinds of nodes"
        yield _problem(what, f"ParallelCluster has at most {_QUEUES_MOST} of each", variable)
    for partition in site["partitions"]:
        name = str(partition["name"])
        if wrong := _name_problem("partition", name):
            yield Problem(wrong, (variable,))
        if partition.get("state"):
            yield _problem(f"partition {name} has a state", "use scontrol update on the head node", variable)
        yield from _nodes_of(partition, given)
    known = [partition["name"] for partition in site["partitions"]]
    for name, kind in given.items():
        if kind["partition"] not in known:
            what = f"kind {name} is of partition {kind['partition']!r}, which is none of slurm_partitions"
            yield _problem(what, f"name one of {', '.join(known)} as its partition", name, f"{PREFIX}kinds")


def _nodes_of(partition: Mapping[str, Any], given: Kinds) -> Iterator[Problem]:
    name, own = partition["name"], kinds_of(partition, given)
    try:
        named = named_kinds(partition, given)
    except InputError as error:
        yield Problem(error, ("slurm_partitions",))
        return
    if sorted(named) != sorted(own):
        what = f"partition {name} has nodes {', '.join(named)}, and is the partition of {', '.join(own) or 'no kind'}"
        remedy = "a node of ParallelCluster is in one queue: let nodes, and the kinds' partition, say the same"
        yield _problem(what, remedy, "slurm_partitions", f"{PREFIX}kinds")
    if len({bool(kind.get("spot")) for kind in own.values()}) > 1:
        what = f"partition {name} has kinds with and without spot"
        yield _problem(what, "a queue has one: make a partition for each", f"{PREFIX}kinds")


def _name_problem(what: str, name: str) -> InputError | None:
    if _QUEUE.fullmatch(name) and not any(word in f"-{name}-" for word in _RESERVED):
        return None
    remedy = "use at most 25 of a-z, 0-9 and '-', a letter first, without st or dy as a word"
    return InputError(f"{what} {name!r} cannot be part of a node's name", remedy)


def _slurm(site: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        wanted = of_cluster(site["slurm"])
    except InputError as error:
        yield Problem(error, ("slurm_conf_extra",))
        return
    levels: list[tuple[str, Level, Mapping[str, Any]]] = [("slurm_conf_extra", Level.CLUSTER, wanted)]
    levels += [("slurm_partitions", Level.QUEUE, partition.get("options") or {}) for partition in site["partitions"]]
    levels += [
        (f"{PREFIX}kinds", Level.RESOURCE, (kind.get("settings") or {}).get("CustomSlurmSettings", {}))
        for kind in site["kinds"].values()
    ]
    for variable, level, given in levels:
        for key, value in given.items():
            for refused in refusals(level, {key: value}, database=bool(site["database"])):
                yield Problem(refused, (key, variable))
    flags = str(wanted.get("PrologFlags", "")).lower().split(",")
    if not {"alloc", "contain"} & set(flags):
        what = "PrologFlags of slurm_conf_extra has neither Alloc nor Contain"
        yield _problem(what, "pod networks must be there before a job's first step: add Contain", "PrologFlags")
