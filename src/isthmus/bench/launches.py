"""What is run: a program, how many ranks of it on how many nodes, and by whom it is started."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from isthmus.bench.sizes import Table


class Column(StrEnum):
    """Who starts the ranks, and where they are."""

    SLURM = "slurm"
    CONTAINER = "container"
    CONTAINER_NETWORK = "container-network"
    POD = "pod"
    MPIJOB = "mpijob"

    @property
    def is_kubernetes(self) -> bool:
        """Whether the user's Kubernetes starts it."""
        return self in (Column.POD, Column.MPIJOB)

    @property
    def is_contained(self) -> bool:
        """Whether the program is the image's."""
        return self is not Column.SLURM


@dataclass(frozen=True, slots=True)
class Launch:
    """One cell of a table: what one run of it does.

    Attributes:
        table: where its result belongs.
        row: the same.
        column: who starts it.
        program: the name of a program of ours, and its arguments.
        nodes: on which it runs; all of them are used.
        per_node: ranks on each.
        memory_mib: of each rank.
        minutes: after which it counts as stuck.
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
        """Name it as results do."""
        return f"{self.table}/{self.row}/{self.column}"
