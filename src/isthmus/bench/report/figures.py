"""Values of results, and their comparison within rounds: a pair is two columns of one row in one round. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

from isthmus.bench.intervals import Median, median
from isthmus.bench.launches import Column
from isthmus.bench.results import Document, Result


class Figure(StrEnum):
    """A quantity of a run."""

    END = "end_s"
    START = "start_s"
    PROGRAM = "program_s"
    SECONDS = "seconds"
    GFLOPS = "gflops"
    MOPS = "mops"
    LATENCY = "latency_us"
    BANDWIDTH = "bandwidth_mb_s"
    STEP = "step_s"

    @property
    def words(self) -> str:
        """Return its name and unit as tables show them."""
        return {Figure.LATENCY: "latency, us", Figure.BANDWIDTH: "bandwidth, MB/s"}.get(self, self.value)


def value(result: Result, figure: Figure) -> float:
    """Return a figure of a run."""
    points = result.figures.get("points") or [[0, 0, 0]]
    read: dict[Figure, Callable[[], float]] = {
        Figure.END: lambda: result.end_s,
        Figure.START: lambda: result.start_s,
        Figure.PROGRAM: lambda: result.program_s,
        # Latency is that of the smallest message, bandwidth the best of all sizes.
        Figure.LATENCY: lambda: points[0][2],
        Figure.BANDWIDTH: lambda: max(point[1] for point in points),
        Figure.STEP: lambda: median(result.steps_s).value,
        # HPCG-like repeats its set of iterations where a duration is asked for.
        Figure.SECONDS: lambda: result.figures["seconds"] / result.figures.get("sets", 1),
    }
    return float(read[figure]() if figure in read else result.figures[figure])


def cell(document: Document, table: str, row: str, column: str) -> dict[int, Result]:
    """Return the valid runs of a cell, by round."""
    return {
        each.round: each
        for each in document.results
        if (each.table, each.row, each.column) == (table, row, column) and each.round and not each.error
    }


def has_plain(document: Document) -> bool:
    """Return whether a plain Kubernetes was measured."""
    return any(each.column == Column.PLAIN and each.round and not each.error for each in document.results)


def values(document: Document, table: str, row: str, column: str, figure: Figure) -> list[float]:
    """Return a cell's values of a figure."""
    return [value(each, figure) for each in cell(document, table, row, column).values()]


def centre(document: Document, table: str, row: str, column: str, figure: Figure) -> Median | None:
    """Return a cell's median; None without runs."""
    found = values(document, table, row, column, figure)
    return median(found) if found else None


def pairs(document: Document, table: str, row: str, column: str, baseline: str, figure: Figure) -> list[float]:
    """Return the ratios of a column to another one, of each round that has both."""
    over, under = cell(document, table, row, column), cell(document, table, row, baseline)
    return [value(over[number], figure) / value(under[number], figure) for number in over if number in under]


def ratio(document: Document, table: str, row: str, column: str, baseline: str, figure: Figure) -> Median | None:
    """Return the median of these ratios; None where there is no pair."""
    found = pairs(document, table, row, column, baseline, figure)
    return median(found) if found else None


def repeats(document: Document, table: str, figure: Figure) -> list[float]:
    """Return the ratios of each native run of a table to the one of the round before: how much equal runs differ."""
    found = []
    for row in sorted({each.row for each in document.results if each.table == table}):
        runs = cell(document, table, row, Column.SLURM)
        found += [
            value(runs[number], figure) / value(runs[number - 1], figure) for number in runs if number - 1 in runs
        ]
    return found


def difference(document: Document, table: str, row: str, column: str, baseline: str, figure: Figure) -> Median | None:
    """Return the median of the differences of a column to another one within rounds; None where there is no pair."""
    over, under = cell(document, table, row, column), cell(document, table, row, baseline)
    found = [value(over[number], figure) - value(under[number], figure) for number in over if number in under]
    return median(found) if found else None


def step_ratio(document: Document, row: str, column: str, baseline: str) -> Median | None:
    """Compare steps of figure 2, one by one: all columns run the same number of them."""
    over, under = cell(document, "figure2", row, column), cell(document, "figure2", row, baseline)
    found = [
        one / other
        for number in over
        if number in under
        for one, other in zip(over[number].steps_s, under[number].steps_s, strict=False)
    ]
    return median(found) if found else None


def steps(document: Document, row: str, column: str) -> Sequence[float]:
    """Return the times of all steps of a cell."""
    return [seconds for each in cell(document, "figure2", row, column).values() for seconds in each.steps_s]


def loads(document: Document) -> list[float]:
    """Return the load of the submitting machine before each run."""
    return [each.load for each in document.results if not each.error]
