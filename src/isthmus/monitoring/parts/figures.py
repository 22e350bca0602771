"""Small makers of metric families, and how a part's figures become a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

UP = "isthmus_exporter_up"
UP_MEANING = "whether a source of isthmus-exporter answered, by part"


@dataclass(frozen=True, slots=True)
class Part:
    """A source.

    Attributes:
        name: of its file and of the label `part`.
        interval_s: between two questions.
        collect: asks, and gives figures; raises where there is no answer.
    """

    name: str
    interval_s: float
    collect: Callable[[], Iterable[Metric]]


def gauge(name: str, meaning: str, value: float) -> Metric:
    """Return a figure that goes up and down."""
    return GaugeMetricFamily(name, meaning, value=value)


def counter(name: str, meaning: str, value: float) -> Metric:
    """Return a figure that grows; its name gets `_total` where it has none."""
    return CounterMetricFamily(name, meaning, value=value)


def gauges(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return a figure for each value of a label."""
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


class _Given(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def write(folder: Path, part: str, metrics: Iterable[Metric] | None) -> None:
    """Write a part's file, in one step; None where its source did not answer."""
    registry = CollectorRegistry()
    registry.register(_Given([gauges(UP, UP_MEANING, "part", {part: metrics is not None}), *(metrics or ())]))
    write_to_textfile(str(folder / f"{part}.prom"), registry)
