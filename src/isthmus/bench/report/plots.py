"""The papers' plots, by pygal. Colours are the page's, so that they follow dark mode.

Bars are medians, with the 95 % interval where there is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pygal
from pygal.style import Style

from isthmus.bench import tables as shapes
from isthmus.bench.intervals import Median, median
from isthmus.bench.report import figures
from isthmus.bench.report.figures import Figure
from isthmus.bench.report.tables import TITLES
from isthmus.bench.results import Document

_COLUMNS = ("slurm", "mpijob", "pod", "plain-kubernetes")
_STYLE = Style(
    background="transparent",
    plot_background="transparent",
    foreground="var(--ink)",
    foreground_strong="var(--ink)",
    foreground_subtle="var(--faint)",
    colors=tuple(f"var(--{name})" for name in ("first", "second", "third", "fourth", "fifth", "sixth")),
    font_family="inherit",
    title_font_size=18,
    label_font_size=13,
    major_label_font_size=13,
    legend_font_size=14,
    opacity=".85",
    opacity_hover="1",
    transition="0s",
)
# pygal adds settings for a script that the page lacks, and the date.
_NEEDLESS = re.compile(r"<!--.*?-->|<script.*?</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Attributes:
        table: below which it stands.
        name: of its file.
        title: what it shows, also for screen readers.
        svg: the plot.
    """

    table: str
    name: str
    title: str
    svg: str


def plots(document: Document) -> list[Plot]:
    """Return all plots for which there are figures."""
    return [
        *_bars(
            document, "table3", "time", "Table 3: from submission to completion, s", shapes.DISTRIBUTIONS, Figure.END
        ),
        *_curves(document, "latency", "Table 4: time of a message between nodes, us", 2),
        *_curves(document, "bandwidth", "Table 4: bandwidth between nodes, MB/s", 1),
        *_scaling(document, "table5", "strong scaling"),
        *_scaling(document, "table6", "weak scaling"),
        *_steps(document),
        *_overheads(document),
        *_bars(document, "ep", "rate", "EP: Mop/s", map(str, shapes.EP_WIDTHS), Figure.MOPS),
    ]


def _bars(document: Document, table: str, name: str, title: str, rows: Iterable[str], figure: Figure) -> Iterator[Plot]:
    rows = list(rows)
    series = {
        TITLES[column]: [figures.centre(document, table, row, column, figure) for row in rows] for column in _COLUMNS
    }
    yield from _drawn(pygal.Bar, table, name, title, rows, series)


def _scaling(document: Document, table: str, what: str) -> Iterator[Plot]:
    number = f"Table {table[-1]}"
    for setup in shapes.SETUPS:
        rows = [f"{ranks} {setup}" for ranks in shapes.WIDTHS]
        title = f"{number}: {what}, set-up {setup}: seconds"
        yield from _bars(document, table, f"seconds-{setup}", title, rows, Figure.SECONDS)
        score: dict[str, list[float | None]] = {}
        for column in ("slurm", "mpijob", "plain-kubernetes"):
            base = figures.centre(document, table, "1", column, Figure.GFLOPS)
            found = [figures.centre(document, table, row, column, Figure.GFLOPS) for row in rows]
            if base:
                score[TITLES[column]] = [each.value / base.value if each else None for each in found]
        if any(any(values) for values in score.values()):
            title = f"{number}: {what}, set-up {setup}: score to that of one rank"
            yield _plot(table, f"score-{setup}", title, _chart(pygal.Line, title, list(map(str, shapes.WIDTHS)), score))


def _curves(document: Document, name: str, title: str, place: int) -> Iterator[Plot]:
    series: dict[str, list[tuple[float, float]]] = {}
    for column in _COLUMNS:
        sizes: dict[float, list[float]] = {}
        for each in figures.cell(document, "table4", "inter", column).values():
            for point in each.figures["points"]:
                sizes.setdefault(point[0], []).append(point[place])
        if sizes:
            series[TITLES[column]] = [(size, median(found).value) for size, found in sorted(sizes.items())]
    if series:
        chart = _new(pygal.XY, title, logarithmic=True, show_dots=False, stroke_style={"width": 3}, x_title="bytes")
        everything = [point for points in series.values() for point in points]
        chart.x_labels = _powers(16, [size for size, _ in everything])
        chart.y_labels = _powers(10, [found for _, found in everything])
        for word, points in series.items():
            chart.add(word, points)
        yield _plot("table4", name, title, chart)


def _powers(base: int, held: Sequence[float]) -> list[float]:
    """Return powers of a base that hold positive values; pygal marks none of its own well on two logarithmic axes."""
    first, last = (math.log(end(held), base) for end in (min, max))
    return [float(base) ** power for power in range(math.floor(first), math.ceil(last) + 1)]


def _steps(document: Document) -> Iterator[Plot]:
    title = "Figure 2: srun of a program that only starts MPI, s"
    chart, is_empty = _new(pygal.Box, title, box_mode="tukey"), True
    for row in ("2 nodes", "4 nodes"):
        for column in ("slurm", "container", "container-network"):
            if found := list(figures.steps(document, row, column)):
                chart.add(f"{row}: {'native' if column == 'slurm' else TITLES[column]}", found)
                is_empty = False
    if not is_empty:
        yield _plot("figure2", "steps", title, chart)


def _overheads(document: Document) -> Iterator[Plot]:
    rows = ["HPL-like", "HPCG-like"]
    series = {
        TITLES[column]: [figures.ratio(document, "figure3", row, column, "slurm", Figure.SECONDS) for row in rows]
        for column in ("container", "container-network")
    }
    yield from _drawn(pygal.Bar, "figure3", "overhead", "Figure 3: time to that of native runs", rows, series)


def _drawn(
    kind: Any, table: str, name: str, title: str, rows: Sequence[str], series: Mapping[str, Sequence[Median | None]]
) -> Iterator[Plot]:
    found = {word: [_bar(each) for each in values] for word, values in series.items() if any(values)}
    if found:
        yield _plot(table, name, title, _chart(kind, title, rows, found))


def _bar(found: Median | None) -> Any:
    if found is None:
        return None
    if found.low is None:
        return found.value
    return {"value": found.value, "ci": {"low": found.low, "high": found.high}}


def _chart(kind: Any, title: str, rows: Sequence[str], series: Mapping[str, Sequence[Any]]) -> Any:
    chart = _new(kind, title)
    chart.x_labels = rows
    for word, values in series.items():
        chart.add(word, values)
    return chart


def _new(kind: Any, title: str, **options: Any) -> Any:
    return kind(
        title=title,
        style=_STYLE,
        js=[],
        disable_xml_declaration=True,
        legend_at_bottom=True,
        legend_at_bottom_columns=3,
        height=420,
        **options,
    )


def _plot(table: str, name: str, title: str, chart: Any) -> Plot:
    # Equal results render an equal page.
    chart.uuid = f"{table}-{name}"
    svg = _NEEDLESS.sub("", chart.render(is_unicode=True))
    return Plot(table, f"{table}-{name}", title, svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1))
