"""Slurm's nodes, partitions and limits for a user, as its commands print them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node.

    Attributes:
        name: Slurm's.
        cpus: for jobs.
        memory_mib: for jobs.
        gres: `name[:type]` -> count.
        features: words for `--constraint`.
        state: Slurm's words, e.g. `MIXED+DRAIN`.
    """

    name: str
    cpus: int
    memory_mib: int
    gres: Mapping[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    state: str = "IDLE"


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What a node has free for jobs now, and in all."""

    name: str
    cpus: int
    memory_mib: int
    all_cpus: int
    all_memory_mib: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition this user may submit to; `state` is `UP`, `DOWN`, `DRAIN` or `INACTIVE`."""

    name: str
    nodes: frozenset[str]
    state: str = "UP"


@dataclass(frozen=True, slots=True)
class Limit:
    """What all jobs of a user may have at once, by one QOS or association; None for no limit."""

    cpus: int | None = None
    memory_mib: int | None = None
    gres: Mapping[str, int] = field(default_factory=dict)
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """All of it.

    Attributes:
        nodes: every node.
        partitions: those of this user.
        limits: each of them holds.
        qos: names of the QOS this user may use.
    """

    nodes: tuple[SlurmNode, ...] = ()
    partitions: tuple[Partition, ...] = ()
    limits: tuple[Limit, ...] = ()
    qos: frozenset[str] = frozenset()
