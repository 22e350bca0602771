"""Computes the runs and their order from the requested tables, a size and a cluster. Pure.

A round runs each cell of each table once. Rows come in a random order, and the columns of a row in a random order right
after one another, so that other load on the machine affects all that are compared. The order is reproducible, so that
an
interrupted plan can be resumed. Round 0 warms up each program in each column once, and is not evaluated.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from isthmus.bench import tables
from isthmus.bench.launches import Column, Launch
from isthmus.bench.sizes import Size, Table

# The user's control plane, the operator and a launcher run beside the ranks.
_OTHERS_CPUS = 4
_OTHERS_MIB = 2600


@dataclass(frozen=True, slots=True)
class Cluster:
    """The resources of a cluster.

    Attributes:
        nodes: number of nodes that take jobs.
        cpus: of the smallest of them.
        memory_mib: of the smallest of them.
        kubernetes: why the user's Kubernetes cannot be used; empty where it can.
        mpijobs: why MPIJobs cannot be used.
        network: why jobs have no pod network.
    """

    nodes: int
    cpus: int
    memory_mib: int
    kubernetes: str = ""
    mpijobs: str = ""
    network: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plan."""

    round: int
    launch: Launch

    @property
    def key(self) -> str:
        """Return the key that results use."""
        return f"{self.round}/{self.launch.key}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs, and the cells that are left out.

    Attributes:
        runs: in their order.
        left_out: cell -> the reason.
    """

    runs: tuple[Run, ...]
    left_out: Mapping[str, str]


def make(wanted: Iterable[Table], size: Size, cluster: Cluster, rounds: int = 0) -> Plan:
    """Compute a plan.

    Args:
        wanted: the requested tables.
        size: of the problems.
        cluster: its resources.
        rounds: of each table, instead of the size's.
    """
    cells = [launch for table in Table if table in set(wanted) for launch in tables.launches(table, size)]
    reasons = {launch.key: _lacking(launch, cluster) for launch in cells}
    kept = [launch for launch in cells if not reasons[launch.key]]
    counts = {table: rounds or size.rounds[table] for table in Table}
    ordered = [Run(0, launch) for launch in _first_of_each(kept)]
    for number in range(1, max(counts.values()) + 1):
        due = [launch for launch in kept if counts[launch.table] >= number]
        ordered += [Run(number, launch) for launch in _shuffled(due, number)]
    return Plan(tuple(ordered), {key: reason for key, reason in reasons.items() if reason})


def worker_cpus(launch: Launch, node_cpus: int) -> int:
    """Return the CPUs that a worker of an MPIJob requests: so many that no two fit on one node."""
    return launch.per_node if launch.nodes == 1 else max(launch.per_node, node_cpus // 2 + 1)


def _first_of_each(cells: Sequence[Launch]) -> Iterator[Launch]:
    seen = set()
    for launch in cells:
        kind = (launch.program[0], launch.column)
        if kind not in seen:
            seen.add(kind)
            yield launch


def _shuffled(cells: Sequence[Launch], number: int) -> Iterator[Launch]:
    dice = random.Random(number)  # noqa: S311 -- an order, no secret
    rows = [list(row) for _, row in groupby(cells, key=lambda launch: (launch.table, launch.row))]
    dice.shuffle(rows)
    for row in rows:
        dice.shuffle(row)
        yield from row


def _lacking(launch: Launch, cluster: Cluster) -> str:
    if launch.nodes > cluster.nodes:
        return f"needs {launch.nodes} nodes, and {cluster.nodes} take jobs"
    if launch.column.is_kubernetes and cluster.kubernetes:
        return cluster.kubernetes
    if launch.column is Column.MPIJOB and cluster.mpijobs:
        return cluster.mpijobs
    if launch.column is Column.CONTAINER_NETWORK and cluster.network:
        return cluster.network
    others = launch.column.is_kubernetes
    cpus = launch.per_node
    if launch.column is Column.MPIJOB:
        cpus = worker_cpus(launch, cluster.cpus)
    cpus += _OTHERS_CPUS * others
    if cpus > cluster.cpus:
        return f"needs {cpus} CPUs on a node, and the smallest has {cluster.cpus}"
    memory_mib = launch.per_node * launch.memory_mib + _OTHERS_MIB * others
    if memory_mib > cluster.memory_mib:
        return f"needs {memory_mib} MiB on a node, and the smallest has {cluster.memory_mib}"
    return ""
