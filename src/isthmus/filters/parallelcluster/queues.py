"""Kinds of nodes and partitions as ParallelCluster's compute resources and queues.

A partition is a queue, and a kind of the site's nodes a compute resource of one queue. Slurm's names of nodes follow
from that (`QUEUE-st-KIND-N` for those that always run, `QUEUE-dy-KIND-N` for those that come with jobs), so that the
inventory has all of them before any is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.provider.nodes import node_kinds
from isthmus.filters.suggest import unknown

EVERY_KIND = "compute"
# What a kind has where it says nothing; the partition is that of slurm_partitions' default.
OWN: Mapping[str, Any] = {"partition": "batch", "min": 0}

Kinds = dict[str, dict[str, Any]]


def kinds(nodes: Mapping[str, Any], settings: Mapping[str, Any]) -> Kinds:
    """Return kind of compute node -> what ParallelCluster has to know of it, `max` among it.

    Args:
        nodes: the site's, as `cluster_nodes` has them.
        settings: kind -> what it is in AWS.

    Raises:
        InputError: settings are for a kind that there is none of, or `nodes` is wrong.
    """
    wanted = {kind.name: kind for kind in node_kinds(nodes) if kind.part == "compute"}
    for name in settings:
        if name not in wanted:
            error = unknown("kind of compute node", str(name), wanted)
            raise InputError(error.problem, f"{error.remedy}; `nodes` of the inventory says them")
    return {name: {**OWN, **(settings.get(name) or {}), "max": len(kind.nodes)} for name, kind in wanted.items()}


def logins(nodes: Mapping[str, Any]) -> int:
    """Return the number of login nodes."""
    return sum(len(kind.nodes) for kind in node_kinds(nodes) if kind.part == "login")


def node_names(name: str, kind: Mapping[str, Any]) -> list[str]:
    """Return Slurm's names of a kind's nodes, static ones first."""
    least, most = int(kind["min"]), int(kind["max"])
    counted = (("st", least), ("dy", most - least))
    return [f"{kind['partition']}-{word}-{name}-{number + 1}" for word, count in counted for number in range(count)]


def ordered(partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return partitions in the order of queues: the default one first."""
    return sorted(partitions, key=lambda partition: not partition.get("default", False))


def kinds_of(partition: Mapping[str, Any], given: Kinds) -> Kinds:
    """Return the kinds of a partition's queue."""
    return {name: kind for name, kind in given.items() if kind["partition"] == partition["name"]}


def named_kinds(partition: Mapping[str, Any], given: Kinds) -> list[str]:
    """Return the kinds that a partition has as its nodes.

    Raises:
        InputError: it names something else.
    """
    named = [str(name) for name in partition["nodes"]]
    for name in named:
        if name != EVERY_KIND and name not in given:
            error = unknown(f"kind of nodes of partition {partition['name']}", name, [*given, EVERY_KIND])
            raise InputError(error.problem, f"{error.remedy}; ParallelCluster's partitions are of whole kinds")
    return [name for name in given if EVERY_KIND in named or name in named]
