"""Goals for figures, and whether they are met. Pure.

A goal is judged by the whole interval: where its bound lies within, or there is no interval, the goal is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from isthmus.bench import tables as shapes
from isthmus.bench.intervals import Median, median
from isthmus.bench.report import figures
from isthmus.bench.report.figures import Figure
from isthmus.bench.report.tables import NOTHING, published, ratio_shown
from isthmus.bench.results import Document


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal for a figure.

    Attributes:
        what: the figure.
        paper: the paper's own figure.
        goal: in words.
        measured: with its interval.
        is_met: whether it is; None where it is open.
    """

    what: str
    paper: str
    goal: str
    measured: str
    is_met: bool | None


def goals(document: Document) -> Iterator[Goal]:
    """Return the goals, and whether they are met."""
    for row in shapes.DISTRIBUTIONS:
        paper = f"{published()['table3'][row]['ratio']:.3f}"
        for figure, words in ((Figure.SECONDS, "the solver's own time"), (Figure.PROGRAM, "ranks from begin to end")):
            own = figures.ratio(document, "table3", row, "mpijob", "slurm", figure)
            yield _goal(f"table 3, {row}: MPIJob to Slurm, {words}", paper, "<= 1.01", own, _at_most(1.01))
    start = figures.centre(document, "table3", "1/4", "mpijob", Figure.START)
    yield _goal("an MPIJob of four workers, submission to first rank, s", "none", "<= 5", start, _at_most(5))
    yield _latency_goal(document)
    bandwidth = figures.ratio(document, "table4", "inter", "mpijob", "slurm", Figure.BANDWIDTH)
    yield _goal("table 4, bandwidth between nodes", "0.94", ">= 0.95", bandwidth, lambda found: found >= 0.95)
    for table in ("table5", "table6"):
        rows = [f"{ranks} {setup}" for ranks in shapes.WIDTHS for setup in shapes.SETUPS]
        all_ratios = _of_rows(document, table, rows, "mpijob", Figure.SECONDS)
        yield _goal(
            f"{table}: MPIJob to Slurm, time, all rows", "0.989 to 1.064", "<= 1.02", all_ratios, _at_most(1.02)
        )
    for row in ("HPL-like", "HPCG-like"):
        found = figures.ratio(document, "figure3", row, "container-network", "slurm", Figure.SECONDS)
        yield _goal(f"{row}, container in pod network to native, time", "< 1 %", "<= 1.01", found, _at_most(1.01))
    for figure, words in ((Figure.SECONDS, "its own time"), (Figure.PROGRAM, "ranks from begin to end")):
        found = _of_rows(document, "ep", map(str, shapes.EP_WIDTHS), "pod", figure)
        yield _goal(
            f"EP, pod of several tasks to sbatch, all widths, {words}", "none", "<= 1.01", found, _at_most(1.01)
        )


def _latency_goal(document: Document) -> Goal:
    """Either bound is enough: a ratio means little where a message takes some microseconds."""
    at = ("table4", "inter", "mpijob", "slurm", Figure.LATENCY)
    ratio, more = figures.ratio(document, *at), figures.difference(document, *at)
    measured = f"{ratio_shown(ratio)}; {_more(more)} us"
    judged = {_judged(ratio, _at_most(1.05)), _judged(more, _at_most(5))}
    met = True if True in judged else None if None in judged else False
    return Goal("table 4, latency between nodes", "1.21", "<= 1.05, or 5 us more", measured, met)


def _more(found: Median | None) -> str:
    if found is None:
        return NOTHING
    return f"{found.value:+.1f}" + ("" if found.low is None else f" ({found.low:+.1f} to {found.high:+.1f})")


def _of_rows(document: Document, table: str, rows: Iterable[str], column: str, figure: Figure) -> Median | None:
    found = [each for row in rows for each in figures.pairs(document, table, row, column, "slurm", figure)]
    return median(found) if found else None


def _at_most(limit: float) -> Callable[[float], bool]:
    return lambda found: found <= limit


def _goal(what: str, paper: str, goal: str, found: Median | None, test: Callable[[float], bool]) -> Goal:
    return Goal(what, paper, goal, ratio_shown(found), _judged(found, test))


def _judged(found: Median | None, test: Callable[[float], bool]) -> bool | None:
    if found is None or found.low is None or found.high is None:
        return None
    ends = {test(found.low), test(found.high)}
    return ends.pop() if len(ends) == 1 else None
