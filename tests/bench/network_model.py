"""From simulated nodes to sites of any size: a model with four numbers, and its plot.

alone(n) = a + b n      a node's own time for a job on n nodes: measured up to 4,000
etcd(n)  = n (c + d n)  etcd's work to notify n nodes: measured as far as the swarm goes, extrapolated beyond
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean, mean

import pygal

# A slope that explains less of what was measured is noise; for etcd it would be extrapolated squared.
EXPLAINED = 0.5
DRAWN = (2, 10, 20, 50, 100, 200, 400, 1000, 2000, 4000)
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Model:
    """Seconds; see the module.

    Attributes:
        alone: a and b.
        etcd: c and d.
        daemon: the work of a daemon while all begin a job, and what each further node adds to it.
        cores: of the machine that the swarm shared.
    """

    alone: tuple[float, float]
    etcd: tuple[float, float]
    daemon: tuple[float, float]
    cores: int

    def site(self, nodes: int) -> float:
        """Return the slowest node's time where every node, and etcd, has its own core."""
        return _line(self.alone, nodes) + nodes * _line(self.etcd, nodes)

    def swarm(self, nodes: int) -> float:
        """Return it where all share the machine that was measured."""
        return _line(self.alone, nodes) + nodes * (_line(self.daemon, nodes) + _line(self.etcd, nodes)) / self.cores


def fit(swarm: Mapping[int, Figures], alone: Mapping[int, Figures], cores: int) -> Model:
    """Fit; small swarms are left out, where a tick of the clock, in which programs' work is counted, is much."""
    large = {size: one for size, one in swarm.items() if size >= max(swarm) / 16}
    return Model(
        alone=_fitted({size: one["undisturbed_s"] for size, one in alone.items()}),
        etcd=_fitted({size: one["etcd_cpu_s"] / size for size, one in large.items()}),
        daemon=_fitted({size: one["daemon_cpu_s"] for size, one in large.items()}),
        cores=cores,
    )


def plot(path: Path, model: Model, swarm: Mapping[int, Figures], alone: Mapping[int, Figures]) -> None:
    """Draw seconds by nodes, both logarithmic."""
    chart = pygal.XY(
        title="Pod network of a job: seconds until its slowest node has it",
        x_title="nodes of the job",
        legend_at_bottom=True,
        disable_xml_declaration=True,
        js=[],
        x_labels=[{"label": str(size), "value": math.log10(size)} for size in DRAWN],
        y_labels=[{"label": _seconds(exponent), "value": exponent} for exponent in (-2, -1, 0, 1, 2)],
    )
    one = _points({nodes: figures["undisturbed_s"] for nodes, figures in alone.items()})
    all_at_once = _points({nodes: figures["undisturbed_s"] for nodes, figures in swarm.items()})
    chart.add("measured: one node, the others known to etcd only", one)
    chart.add(f"measured: all nodes simulated on {model.cores} cores", all_at_once)
    chart.add("model of the latter", _points({n: model.swarm(n) for n in DRAWN if n <= max(swarm)}), show_dots=False)
    chart.add("model: nodes with cores of their own", _points({n: model.site(n) for n in DRAWN}), show_dots=False)
    chart.add("paper: just above 0.8 s at 400", _points({400: 0.8}))
    chart.render_to_file(str(path))


def _fitted(points: Mapping[int, float]) -> tuple[float, float]:
    """Return height and slope of the line through points; no time grows shorter with nodes.

    Errors count by their share of the time: those of milliseconds as much as those of seconds.
    """
    sizes, times = list(points), list(points.values())
    weights = [time**-2 for time in times]
    middle, time = fmean(sizes, weights), fmean(times, weights)
    spread = fmean([(size - middle) ** 2 for size in sizes], weights)
    slope = fmean([(n - middle) * (t - time) for n, t in points.items()], weights) / spread
    is_line = slope > 0 and len(set(times)) > 1 and correlation(sizes, times) ** 2 >= EXPLAINED
    return (time - slope * middle, slope) if is_line else (mean(times), 0.0)


def _line(line: tuple[float, float], nodes: int) -> float:
    return line[0] + line[1] * nodes


def _points(values: Mapping[int, float]) -> list[tuple[float, float]]:
    return [(math.log10(nodes), math.log10(seconds)) for nodes, seconds in values.items()]


def _seconds(exponent: float) -> str:
    return f"{10**exponent:.2g} s"
