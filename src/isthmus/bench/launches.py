"""A launch: a program, its number of ranks and nodes, and the platform that starts it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from isthmus.bench.sizes import Table


class Column(StrEnum):
    """How ranks are started, and where they run."""

    SLURM = "slurm"
    CONTAINER = "container"
    CONTAINER_NETWORK = "container-network"
    POD = "pod"
    MPIJOB = "mpijob"
    PLAIN = "plain-kubernetes"

    @property
    def is_kubernetes(self) -> bool:
        """Whether it runs in the user's Kubernetes."""
        return self in (Column.POD, Column.MPIJOB)

    @property
    def is_mpijob(self) -> bool:
        """Whether it is an MPIJob, here or in a plain Kubernetes."""
        return self in (Column.MPIJOB, Column.PLAIN)

    @property
    def is_contained(self) -> bool:
        """Whether the program is that of the image."""
        return self is not Column.SLURM


@dataclass(frozen=True, slots=True)
class Launch:
    """One cell of a table.

    Attributes:
        table: of its result.
        row: of its result.
        column: how it is started.
        program: name of one of the programs, and its arguments.
        nodes: number of nodes, all of which are used.
        per_node: ranks on each.
        memory_mib: of each rank.
        minutes: its time limit.
        steps: how often one job starts the program.
    """

    table: Table
    row: str
    column: Column
    program: tuple[str, ...]
    nodes: int
    per_node: int
    memory_mib: int
    minutes: int
    steps: int = 1

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.nodes * self.per_node

    @property
    def key(self) -> str:
        """Return the key that results use."""
        return f"{self.table}/{self.row}/{self.column}"
