"""Renders partitions.conf from partitions with inventory groups and host names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.conf import conf_key, conf_value
from isthmus.filters.slurm.nodes import slurm_expand, slurm_fold
from isthmus.filters.slurm.time_limits import time_minutes
from isthmus.filters.suggest import check_keys, unknown

_KEYS = ("name", "nodes", "default", "max_time", "state", "cloud_max", "options")
_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")
# Settings with a key of their own, which `options` must not repeat.
_OWN = ("partitionname", "nodes", "default", "maxtime", "state")


def slurm_partitions(
    partitions: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
    compute_names: Collection[str],
    cloud: Collection[str] = (),
) -> str:
    """Write partitions.conf, one line per partition, in the order given.

    Args:
        partitions: `slurm_partitions`: name, nodes (groups, hosts or ranges such as `c[1-4]`), default,
            max_time (a quoted Slurm time), state, cloud_max (the most nodes that are started for it), options (further
            keys of slurm.conf).
        groups: Ansible's `groups`: group -> host names.
        compute_names: names of all compute nodes.
        cloud: names of those among them that Slurm starts when jobs wait.

    Raises:
        InputError: for an unknown key, node or group (with those known), a node that is no compute node,
            a partition without nodes, a bad time or state, a name used twice, or two defaults.
    """
    for partition in partitions:
        check_keys("a partition", partition, _KEYS, required=["name"])
    names = [str(partition["name"]) for partition in partitions]
    if doubles := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"partition {doubles[0]!r} exists twice", "give each partition its own name")
    defaults = [str(partition["name"]) for partition in partitions if partition.get("default")]
    if len(defaults) > 1:
        raise InputError(f"{' and '.join(defaults)} are both the default", "set default: true on one partition")
    return "".join(_line(partition, _nodes(partition, groups, compute_names), cloud) for partition in partitions)


def _line(partition: Mapping[str, Any], nodes: Sequence[str], cloud: Collection[str]) -> str:
    settings = {
        "PartitionName": partition["name"],
        "Nodes": slurm_fold(_bounded(partition, nodes, cloud)),
        **({"Default": True} if partition.get("default") else {}),
        **_limits(partition),
        **_options(partition),
    }
    return " ".join(f"{key}={conf_value(key, value)}" for key, value in settings.items()) + "\n"


def _bounded(partition: Mapping[str, Any], nodes: Sequence[str], cloud: Collection[str]) -> list[str]:
    """Drop cloud nodes beyond the limit: a node outside a partition is never started for it."""
    most = partition.get("cloud_max")
    if most is None:
        return [*nodes]
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise InputError(f"cloud_max of partition {partition['name']} is {most!r}", "give a whole number, 0 for none")
    coming = [name for name in dict.fromkeys(nodes) if name in cloud]
    left = [name for name in nodes if name not in coming[most:]]
    if not left:
        raise InputError(f"partition {partition['name']} has no nodes but cloud nodes, and cloud_max 0", "raise it")
    return left


def _limits(partition: Mapping[str, Any]) -> dict[str, str]:
    limits = {}
    if (max_time := partition.get("max_time")) is not None:
        time_minutes(f"max_time of partition {partition['name']}", max_time)
        limits["MaxTime"] = max_time
    state = partition.get("state", "UP")
    if state not in _STATES:
        raise unknown(f"state of partition {partition['name']}", str(state), _STATES)
    return {**limits, "State": state}


def _options(partition: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = partition.get("options") or {}
    for key in options:
        if conf_key(key).lower() in _OWN:
            raise InputError(
                f"{key} stands in options of partition {partition['name']}",
                f"use the partition's own keys: {', '.join(_KEYS)}",
            )
    return options


def _nodes(
    partition: Mapping[str, Any], groups: Mapping[str, Sequence[str]], compute_names: Collection[str]
) -> list[str]:
    where = f"partition {partition['name']}"
    nodes = list(_expand(partition.get("nodes") or (), groups, compute_names, where))
    if not nodes:
        raise InputError(f"{where} has no nodes", "name hosts or groups that have some under nodes")
    for node in nodes:
        if node not in compute_names:
            raise InputError(
                f"{node} in {where} is no compute node",
                f"put it into the group compute, or use some of {slurm_fold(compute_names)}",
            )
    return nodes


def _expand(
    items: Sequence[str], groups: Mapping[str, Sequence[str]], compute_names: Collection[str], where: str
) -> Iterator[str]:
    if isinstance(items, str):
        raise InputError(f"nodes of {where} is text: {items!r}", "write a list, even of one")
    known = {*groups, *compute_names, *(host for hosts in groups.values() for host in hosts)}
    for item in items:
        if item in groups:
            yield from groups[item]
            continue
        for name in slurm_expand(item) if "[" in item else [item]:
            if name not in known:
                raise unknown(f"node or group in {where}", name, known)
            yield name
