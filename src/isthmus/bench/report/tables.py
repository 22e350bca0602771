"""The tables of the report: paper, measured, ratio with its interval. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from isthmus.bench import tables as shapes
from isthmus.bench.intervals import Median, median
from isthmus.bench.report import figures
from isthmus.bench.report.figures import Figure
from isthmus.bench.results import Document

NOTHING = "not run"
_PAPER = ("slurm", "mpijob")
_BESIDE = ("slurm", "mpijob", "plain-kubernetes")
# Titles of columns, as readers know them.
TITLES = {
    "slurm": "Slurm",
    "mpijob": "MPIJob",
    "pod": "pod",
    "container": "container",
    "container-network": "container, pod network",
    "plain-kubernetes": "plain Kubernetes",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """One table.

    Attributes:
        name: of the anchor.
        title: above it.
        note: what a reader must know.
        header: of each column.
        rows: cells, as text.
    """

    name: str
    title: str
    note: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@cache
def published() -> Mapping[str, Any]:
    """Return what the papers published."""
    text = (files("isthmus.bench.report") / "published.yml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def grids(document: Document) -> list[Grid]:
    """Return all tables, in the papers' order; that of a plain Kubernetes only where it was measured."""
    scaling = [_table5, _table6, *([_plain] if figures.has_plain(document) else [])]
    return [each(document) for each in (_table3, _table4, _parts, *scaling, _figure2, _figure3, _ep, _noise)]


def shown(found: Median | None, digits: int = 3) -> str:
    """Write a median as people read it."""
    return NOTHING if found is None else f"{found.value:.{digits}g}" if found.value < 1000 else f"{found.value:.0f}"


def ratio_shown(found: Median | None) -> str:
    """Write a ratio with its interval."""
    if found is None:
        return NOTHING
    if found.low is None or found.high is None:
        return f"{found.value:.3f} (too few pairs: {found.count})"
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _table3(document: Document) -> Grid:
    rows = []
    for row in shapes.DISTRIBUTIONS:
        paper = published()["table3"][row]
        at = ("table3", row)
        rows.append(
            (
                row,
                f"{paper['slurm']['seconds']:.0f} / {paper['mpijob']['seconds']:.0f}",
                f"{paper['ratio']:.3f}",
                *(shown(figures.centre(document, *at, column, Figure.END)) for column in ("slurm", "mpijob", "pod")),
                ratio_shown(figures.ratio(document, *at, "mpijob", "slurm", Figure.END)),
                *(
                    ratio_shown(figures.ratio(document, *at, column, "slurm", figure))
                    for figure in (Figure.PROGRAM, Figure.SECONDS)
                    for column in ("mpijob", "pod")
                ),
                " / ".join(
                    shown(figures.centre(document, *at, column, Figure.GFLOPS)) for column in ("slurm", "mpijob")
                ),
            )
        )
    header = (
        "ranks on nodes", "paper: Slurm / Kubernetes, s", "paper: ratio",
        "Slurm, s", "MPIJob, s", "pod, s", "MPIJob to Slurm",
        "ranks from begin to end: MPIJob", "pod", "the solver's own time: MPIJob", "pod",
        "Gflop/s, Slurm / MPIJob",
    )  # fmt: skip
    note = (
        "Four ranks of a finite element program, from submission to completion. The paper's program is Ansys APDL with "
        "half an hour a run; here dolfinx solves linear elasticity for seconds, so what a start takes is a larger "
        "share. Beside it stand the ranks' time from the first one's begin to the last one's end, in which each loads "
        "its libraries (from the image, where there is one), and the time that the solver itself reports."
    )
    return Grid("table3", "Table 3: finite elements, time to completion", note, header, tuple(rows))


def _table4(document: Document) -> Grid:
    rows = []
    for row, title in (("inter", "between nodes"), ("intra", "within a node")):
        for figure in (Figure.LATENCY, Figure.BANDWIDTH):
            paper = published()["table4"][row][figure]
            at = ("table4", row)
            rows.append(
                (
                    f"{figure.words}, {title}",
                    f"{paper['slurm']} / {paper['mpijob']}",
                    f"{paper['ratio']:.2f}",
                    *(shown(figures.centre(document, *at, column, figure)) for column in ("slurm", "mpijob", "pod")),
                    ratio_shown(figures.ratio(document, *at, "mpijob", "slurm", figure)),
                    ratio_shown(figures.ratio(document, *at, "pod", "slurm", figure)),
                )
            )
    header = (
        "what", "paper: Slurm / Kubernetes", "paper: ratio",
        "Slurm", "MPIJob", "pod", "MPIJob to Slurm", "pod to Slurm",
    )  # fmt: skip
    note = (
        "NetPIPE between two ranks: one byte for latency, the best of all sizes for bandwidth. The paper names no tool."
    )
    return Grid("table4", "Table 4: latency and bandwidth", note, header, tuple(rows))


def _parts(document: Document) -> Grid:
    """Each part of the way from a native run to an MPIJob alone; their product is about the ratio of the tables."""
    parts = (
        ("container", "slurm"),
        ("container-network", "container"),
        ("mpijob", "container-network"),
        ("pod", "container-network"),
    )
    cells = [("table3", row, Figure.SECONDS, f"{row}, the solver's own time") for row in shapes.DISTRIBUTIONS]
    for row, title in (("inter", "between nodes"), ("intra", "within a node")):
        cells += [("table4", row, figure, f"{figure.words}, {title}") for figure in (Figure.LATENCY, Figure.BANDWIDTH)]
    rows = [
        (title, *(ratio_shown(figures.ratio(document, table, row, *part, figure)) for part in parts))
        for table, row, figure, title in cells
    ]
    header = ("what", *(f"{TITLES[column]} to {TITLES[baseline]}" for column, baseline in parts))
    note = (
        "Where the distances of tables 3 and 4 come from: the same program in a container of a Slurm step, then in a "
        "pod network, then in a pod. What Kubernetes itself costs are the last two columns."
    )
    return Grid("parts", "Tables 3 and 4, part by part", note, header, tuple(rows))


def _table5(document: Document) -> Grid:
    note = (
        "Strong scaling of an HPCG-like program of our own; its score is no HPCG score. Set-up A is one node, B four. "
        "Times are those of one set of iterations. "
        "S and PS are the speed-up in time and in score, each from its own platform's run of one rank."
    )
    return _scaling(document, "table5", "Table 5: HPCG-like, strong scaling", note)


def _table6(document: Document) -> Grid:
    note = "Weak scaling: each rank has as many points as one rank alone. The paper's base is one rank of table 5."
    return _scaling(document, "table6", "Table 6: HPCG-like, weak scaling", note)


def _scaling(document: Document, table: str, title: str, note: str) -> Grid:
    rows = []
    for row in shapes.SCALING_ROWS:
        paper = published()[table].get(row)
        times = (
            [f"{column[0]:g} ({column[1]:g})" for column in (paper["slurm"], paper["mpijob"])] if paper else ["none"]
        )
        rows.append(
            (
                row,
                " / ".join(times),
                f"{paper['mpijob'][0] / paper['slurm'][0]:.3f}" if paper else "none",
                *(_time_and_score(document, table, row, column) for column in _PAPER),
                ratio_shown(figures.ratio(document, table, row, "mpijob", "slurm", Figure.SECONDS)),
                *(speed_up(document, table, row, column) for column in _PAPER),
            )
        )
    header = (
        "ranks, set-up", "paper: Slurm / Kubernetes, s (Gflop/s)", "paper: ratio",
        "Slurm, s (Gflop/s)", "MPIJob, s (Gflop/s)", "MPIJob to Slurm, time", "Slurm: S, PS", "MPIJob: S, PS",
    )  # fmt: skip
    return Grid(table, title, note, header, tuple(rows))


def _time_and_score(document: Document, table: str, row: str, column: str) -> str:
    seconds, score = (
        figures.centre(document, table, row, column, figure) for figure in (Figure.SECONDS, Figure.GFLOPS)
    )
    return NOTHING if seconds is None else f"{shown(seconds)} ({shown(score)})"


def speed_up(document: Document, table: str, row: str, column: str) -> str:
    """Write speed-up in time and in score, from the column's own run of one rank."""
    base = [figures.centre(document, table, "1", column, figure) for figure in (Figure.SECONDS, Figure.GFLOPS)]
    here = [figures.centre(document, table, row, column, figure) for figure in (Figure.SECONDS, Figure.GFLOPS)]
    if not all(base) or not all(here):
        return NOTHING
    (base_s, base_score), (seconds, score) = ([each.value for each in both if each] for both in (base, here))
    return f"{base_s / seconds:.2f}, {score / base_score:.2f}"


def _plain(document: Document) -> Grid:
    cells = []
    for row in shapes.DISTRIBUTIONS:
        for figure, words in ((Figure.END, "from submission to completion, s"), (Figure.SECONDS, "the solver, s")):
            cells.append(("table3", row, figure, f"table 3, {row}, {words}"))
    for row, words in (("inter", "between nodes"), ("intra", "within a node")):
        figures_of = (Figure.LATENCY, Figure.BANDWIDTH)
        cells += [("table4", row, figure, f"table 4, {figure.words}, {words}") for figure in figures_of]
    for table in ("table5", "table6"):
        cells += [(table, row, Figure.SECONDS, f"table {table[-1]}, {row}, s") for row in shapes.SCALING_ROWS]
    rows = [
        (
            words,
            *(shown(figures.centre(document, table, row, column, figure)) for column in _BESIDE),
            ratio_shown(figures.ratio(document, table, row, "plain-kubernetes", "slurm", figure)),
            ratio_shown(figures.ratio(document, table, row, "mpijob", "plain-kubernetes", figure)),
        )
        for table, row, figure, words in cells
        if figures.cell(document, table, row, "plain-kubernetes")
    ]
    header = (
        "what", *(TITLES[column] for column in _BESIDE), "plain Kubernetes to Slurm", "MPIJob to plain Kubernetes"
    )  # fmt: skip
    note = (
        "The same MPIJob from the same image in a Kubernetes without Slurm, with the official kubelet. It took turns "
        "with the other columns, some rows at a time, so pairs lie further apart than those of other columns."
    )
    return Grid("plain", "Tables 3 to 6 beside a plain Kubernetes", note, header, tuple(rows))


def _figure2(document: Document) -> Grid:
    rows = []
    for row in ("2 nodes", "4 nodes"):
        for column in ("slurm", "container", "container-network"):
            found = figures.steps(document, row, column)
            compared = figures.step_ratio(document, row, column, "slurm") if column != "slurm" else None
            beside = figures.step_ratio(document, row, column, "container") if column == "container-network" else None
            rows.append(
                (
                    f"{row}, {'native' if column == 'slurm' else TITLES[column]}",
                    str(len(found)),
                    shown(median(found) if found else None),
                    "1" if column == "slurm" else ratio_shown(compared),
                    ratio_shown(beside) if beside else "",
                )
            )
    header = ("steps", "how many", "median, s", "to native", "to container")
    note = (
        "Private-network paper, figure 2: srun of a program that only starts MPI, one step after the other in one job. "
        "The paper published no values; it says that the pod network adds nothing to a container's start."
    )
    return Grid("figure2", "Figure 2: starts of steps", note, header, tuple(rows))


def _figure3(document: Document) -> Grid:
    rows = []
    for row in ("HPL-like", "HPCG-like"):
        at = ("figure3", row)
        rows.append(
            (
                row,
                "< 1 %",
                *(
                    shown(figures.centre(document, *at, column, Figure.GFLOPS))
                    for column in ("slurm", "container", "container-network")
                ),
                *(
                    ratio_shown(figures.ratio(document, *at, column, "slurm", Figure.SECONDS))
                    for column in ("container", "container-network")
                ),
            )
        )
    header = (
        "program", "paper: overhead", "native, Gflop/s", "container, Gflop/s", "container in pod network, Gflop/s",
        "container to native, time", "container in pod network to native, time",
    )  # fmt: skip
    note = "Private-network paper, figure 3: two nodes, the same stack on the host and in the container."
    return Grid("figure3", "Figure 3: HPL-like and HPCG-like in containers and pod networks", note, header, tuple(rows))


def _ep(document: Document) -> Grid:
    rows = [
        (
            str(ranks),
            *(shown(figures.centre(document, "ep", str(ranks), column, Figure.MOPS)) for column in ("slurm", "pod")),
            *(shown(figures.centre(document, "ep", str(ranks), column, Figure.END)) for column in ("slurm", "pod")),
            *(
                ratio_shown(figures.ratio(document, "ep", str(ranks), "pod", "slurm", figure))
                for figure in (Figure.PROGRAM, Figure.SECONDS)
            ),
        )
        for ranks in shapes.EP_WIDTHS
    ]
    header = (
        "ranks",
        "Slurm, Mop/s",
        "pod, Mop/s",
        "Slurm, s to the end",
        "pod, s to the end",
        "ranks from begin to end",
        "EP's own time",
    )
    note = (
        "EP swept over its widths on two nodes, as the High-Performance Kubernetes paper does; it published no values."
    )
    return Grid("ep", "EP", note, header, tuple(rows))


def _noise(document: Document) -> Grid:
    """Native runs beside native runs: no ratio of two columns can be known better than these."""
    measured = (
        ("table 3, the solver's own time", "table3", Figure.SECONDS),
        ("table 4, latency", "table4", Figure.LATENCY),
        ("table 4, bandwidth", "table4", Figure.BANDWIDTH),
        ("table 5, time", "table5", Figure.SECONDS),
        ("table 6, time", "table6", Figure.SECONDS),
        ("figure 3, time", "figure3", Figure.SECONDS),
        ("EP, its own time", "ep", Figure.SECONDS),
    )
    rows = []
    for title, table, figure in measured:
        found = figures.repeats(document, table, figure)
        middle = statistics.quantiles(found, method="inclusive") if len(found) > 1 else None
        half = f"{middle[0]:.2f} to {middle[2]:.2f}" if middle else NOTHING
        rows.append((title, str(len(found)), ratio_shown(median(found) if found else None), half))
    note = (
        "Each native run to the same native run of the round before: how much equal runs differ on this machine. A "
        "perfect column would have such ratios, too."
    )
    return Grid("noise", "Noise", note, ("what", "pairs", "median", "half of them within"), tuple(rows))
