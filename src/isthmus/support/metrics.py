"""Metrics for Prometheus: what each program puts on its pages.

Each program has a registry of its own: the library's shared one adds what it finds in the interpreter, and would give a
program the metrics of whatever it imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Families(Collector):
    """A page of metrics that are made for it alone, as of pods that come and go."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Give them."""
        return self._families


def registry() -> CollectorRegistry:
    """Return an empty one."""
    # Prometheus detects by itself that a counter was reset.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    return CollectorRegistry()


def histogram(
    source: CollectorRegistry, name: str, what: str, bounds_s: Sequence[float], by: type[StrEnum] | None = None
) -> Histogram:
    """Return a histogram of seconds.

    Args:
        source: the program's registry.
        name: of the metric.
        what: it measures.
        bounds_s: of its buckets.
        by: kinds, each with a series of its own that is there before anything was measured; the label has their name.
    """
    label = by.__name__.lower() if by else ""
    made = Histogram(name, what, [label] if by else [], registry=source, buckets=bounds_s)
    for kind in by or ():
        made.labels(kind)
    return made


def text(source: Collector) -> str:
    """Return the page of a registry, or of families, in Prometheus' text format (0.0.4)."""
    return generate_latest(source).decode()
