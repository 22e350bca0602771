"""Rows and columns of each table as launches: the papers' shapes with a size's problems. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isthmus.bench.launches import Column, Launch
from isthmus.bench.sizes import Size, Table

# Between Slurm and an MPIJob lie a container and a pod network: their columns show which part a distance is of.
_ALL = (Column.SLURM, Column.CONTAINER, Column.CONTAINER_NETWORK, Column.MPIJOB, Column.POD)
_PAPER = (Column.SLURM, Column.MPIJOB)
# Those with a column mpijob have one of a plain Kubernetes, on request.
BESIDE = (Table.TABLE3, Table.TABLE4, Table.TABLE5, Table.TABLE6)
_PODS = (Column.SLURM, Column.POD)
_STEPS = (Column.SLURM, Column.CONTAINER, Column.CONTAINER_NETWORK)
# Set-up A is one worker, B is four.
SETUPS = {"A": 1, "B": 4}
WIDTHS = (4, 8, 12, 16)
# One rank is the base of speed-ups.
SCALING_ROWS = ("1", *(f"{ranks} {setup}" for ranks in WIDTHS for setup in SETUPS))
EP_WIDTHS = (2, 4, 8, 16)
# Four ranks: all on one node, on two, one on each of four.
DISTRIBUTIONS = {"1/1": (1, 4), "1/2": (2, 2), "1/4": (4, 1)}


def launches(table: Table, size: Size, *, plain: bool = False) -> Iterator[Launch]:
    """Return a table's launches, row by row.

    Args:
        table: which.
        size: of its problems.
        plain: whether an MPIJob is one of a plain Kubernetes, too.
    """
    for launch in _TABLES[table](size):
        yield launch
        if plain and table in BESIDE and launch.column is Column.MPIJOB:
            yield replace(launch, column=Column.PLAIN)


def _row(
    table: Table, row: str, columns: Sequence[Column], program: Sequence[object], shape: tuple[int, int], size: Size
) -> Iterator[Launch]:
    steps = size.steps if table is Table.FIGURE2 else 1
    for column in columns:
        words = tuple(map(str, program))
        yield Launch(table, row, column, words, *shape, memory_mib=size.memory_mib, minutes=size.minutes, steps=steps)


def _table3(size: Size) -> Iterator[Launch]:
    for row, shape in DISTRIBUTIONS.items():
        yield from _row(Table.TABLE3, row, _ALL, ("fe", size.fe_unknowns), shape, size)


def _table4(size: Size) -> Iterator[Launch]:
    program = ("netpipe", size.message_bytes, size.message_repeats)
    for row, shape in {"inter": (2, 1), "intra": (1, 2)}.items():
        yield from _row(Table.TABLE4, row, _ALL, program, shape, size)


def _scaling(table: Table, size: Size) -> Iterator[Launch]:
    kind, points = ("--global", size.strong) if table is Table.TABLE5 else ("--local", size.weak)
    program = ("hpcg", kind, points, *size.hpcg_time)
    yield from _row(table, "1", _PAPER, program, (1, 1), size)
    for ranks in WIDTHS:
        for setup, nodes in SETUPS.items():
            yield from _row(table, f"{ranks} {setup}", _PAPER, program, (nodes, ranks // nodes), size)


def _table5(size: Size) -> Iterator[Launch]:
    yield from _scaling(Table.TABLE5, size)


def _table6(size: Size) -> Iterator[Launch]:
    yield from _scaling(Table.TABLE6, size)


def _figure2(size: Size) -> Iterator[Launch]:
    for nodes in (2, 4):
        yield from _row(Table.FIGURE2, f"{nodes} nodes", _STEPS, ("init",), (nodes, 1), size)


def _figure3(size: Size) -> Iterator[Launch]:
    yield from _row(Table.FIGURE3, "HPL-like", _STEPS, ("hpl", size.hpl_unknowns, size.hpl_block), (2, 1), size)
    program = ("hpcg", "--local", size.hpcg_figure3, *size.hpcg_time)
    yield from _row(Table.FIGURE3, "HPCG-like", _STEPS, program, (2, 1), size)


def _ep(size: Size) -> Iterator[Launch]:
    for ranks in EP_WIDTHS:
        yield from _row(Table.EP, str(ranks), _PODS, ("ep", size.ep_class), (2, ranks // 2), size)


_TABLES = {
    Table.TABLE3: _table3,
    Table.TABLE4: _table4,
    Table.TABLE5: _table5,
    Table.TABLE6: _table6,
    Table.FIGURE2: _figure2,
    Table.FIGURE3: _figure3,
    Table.EP: _ep,
}
