"""Computes the runs and their order from the requested tables, a size and a cluster. Pure.

A round runs each cell of each table once. Rows come in a random order, and the columns of a row in a random order right
after one another, so that other load on the machine affects all that are compared. The order is reproducible, so that
an interrupted plan can be resumed. Round 0 warms up each program in each column once, and is not evaluated.

A plain Kubernetes may have to be down while this cluster is measured, and the other way round. So its runs are those of
some rows at a time, before or after all others of these rows. Of two such turns one begins as the other ended: half as
many changes, and load that grows or falls steadily falls on both sides alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from isthmus.bench import tables
from isthmus.bench.launches import Column, Launch
from isthmus.bench.sizes import Size, Table

# The user's control plane, the operator and a launcher run beside the ranks.
_OTHERS_CPUS = 4
_OTHERS_MIB = 2600
# In a plain Kubernetes an sshd, a launcher and the operator.
_BESIDE_MIB = 512


@dataclass(frozen=True, slots=True)
class Plain:
    """The resources of a plain Kubernetes.

    Attributes:
        nodes: number of nodes that take pods.
        cpus: that pods can request on the smallest of them.
        memory_mib: likewise.
        programs: versions of its kubelets and container runtimes.
        problem: why it cannot be used; empty where it can.
        alone: whether it and this cluster are never up at the same time.
    """

    nodes: int = 0
    cpus: int = 0
    memory_mib: int = 0
    programs: tuple[str, ...] = ()
    problem: str = ""
    alone: bool = False


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
        plain: a plain Kubernetes to compare with; None where none is wanted.
    """

    nodes: int
    cpus: int
    memory_mib: int
    kubernetes: str = ""
    mpijobs: str = ""
    network: str = ""
    plain: Plain | None = None


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
    plain = cluster.plain is not None
    cells = [launch for table in Table if table in set(wanted) for launch in tables.launches(table, size, plain=plain)]
    reasons = {launch.key: _lacking(launch, cluster) for launch in cells}
    kept = [launch for launch in cells if not reasons[launch.key]]
    counts = {table: rounds or size.rounds[table] for table in Table}
    ordered = [Run(0, launch) for launch in _first_of_each(kept)]
    for number in range(1, max(counts.values()) + 1):
        due = [launch for launch in kept if counts[launch.table] >= number]
        ordered += [Run(number, launch) for launch in _round(due, number, size.turn_rows)]
    return Plan(tuple(ordered), {key: reason for key, reason in reasons.items() if reason})


def worker_cpus(launch: Launch, node_cpus: int) -> int:
    """Return the CPUs that a worker of an MPIJob requests: so many that no two fit on one node."""
    return launch.per_node if launch.nodes == 1 else max(launch.per_node, node_cpus // 2 + 1)


def plain_worker_cpus(launch: Launch, node_cpus: int) -> int:
    """Return the CPUs that a worker requests of a plain Kubernetes.

    As many as it has ranks. Where Slurm's nodes declare more than the machine has, so that ranks share them, no node of
    a plain Kubernetes has as many, and its worker gets what there is: what is requested limits nobody.
    """
    return max(1, min(launch.per_node, node_cpus - 1))


def _first_of_each(cells: Sequence[Launch]) -> Iterator[Launch]:
    seen = set()
    for launch in sorted(cells, key=_is_plain):
        kind = (launch.program[0], launch.column)
        if kind not in seen:
            seen.add(kind)
            yield launch


def _round(cells: Sequence[Launch], number: int, turn_rows: int) -> Iterator[Launch]:
    plain = {_row(launch): launch for launch in cells if _is_plain(launch)}
    rows = _shuffled([launch for launch in cells if not _is_plain(launch)], number)
    turns = [rows[place : place + turn_rows] for place in range(0, len(rows), turn_rows)] if plain else [rows]
    for place, turn in enumerate(turns, (number - 1) * len(turns)):
        here = [launch for row in turn for launch in row]
        there = [plain[_row(first)] for first, *_ in turn if _row(first) in plain]
        yield from there + here if place % 2 else here + there


def _shuffled(cells: Sequence[Launch], number: int) -> list[list[Launch]]:
    dice = random.Random(number)  # noqa: S311 -- an order, no secret
    rows = [list(row) for _, row in groupby(cells, key=_row)]
    dice.shuffle(rows)
    for row in rows:
        dice.shuffle(row)
    return rows


def _row(launch: Launch) -> tuple[Table, str]:
    return launch.table, launch.row


def _is_plain(launch: Launch) -> bool:
    return launch.column is Column.PLAIN


def _lacking(launch: Launch, cluster: Cluster) -> str:
    if launch.column is Column.PLAIN and cluster.plain:
        return _lacking_beside(launch, cluster, cluster.plain)
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


def _lacking_beside(launch: Launch, cluster: Cluster, plain: Plain) -> str:
    # Without a run of Slurm there is nothing to compare it with.
    if plain.problem or (lacking := _lacking(replace(launch, column=Column.SLURM), cluster)):
        return plain.problem or lacking
    if launch.nodes > plain.nodes:
        return f"needs {launch.nodes} nodes, and {plain.nodes} of the plain Kubernetes take pods"
    memory_mib = launch.per_node * launch.memory_mib + _BESIDE_MIB
    if memory_mib > plain.memory_mib:
        return f"needs {memory_mib} MiB on a node, and the smallest of the plain Kubernetes has {plain.memory_mib}"
    return ""
