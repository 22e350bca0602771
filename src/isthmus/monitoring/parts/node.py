"""Figures of this host: what `isthmus node check` finds, whether the daemons run, when certificates end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric

from isthmus.monitoring import checks
from isthmus.monitoring.checks import Check
from isthmus.monitoring.parts.figures import gauges

PROBLEMS = "isthmus_node_check_problems"


def problems(found: Iterable[tuple[Check, int]]) -> Metric:
    """Return how many problems each look found; `drains` says whether slurmd's own examination drains for them."""
    family = GaugeMetricFamily(
        PROBLEMS, "problems that a look of `isthmus node check` found", labels=["check", "drains"]
    )
    for check, count in found:
        family.add_metric([check.name, "yes" if check.drains else "no"], count)
    return family


def running(units: Mapping[str, bool]) -> Metric:
    """Return which of the cluster's daemons run, of those that are enabled here."""
    return gauges("isthmus_daemon_up", "whether a daemon of the cluster that is enabled here runs", "daemon", units)


def ends(certificates: Mapping[Path, datetime]) -> Metric:
    """Return when each certificate ends, by the file's name."""
    meaning = "when a certificate in /etc/isthmus/tls ends, in seconds since 1970"
    values = {file.stem: end.timestamp() for file, end in certificates.items()}
    return gauges("isthmus_certificate_end_timestamp_seconds", meaning, "certificate", values)


def quick() -> Iterator[Metric]:
    """Make the looks that cost moments."""
    yield problems((check, len(checks.problems_of(check))) for check in checks.CHECKS if not check.slow)
    yield running(checks.daemons())
    yield ends(checks.certificate_ends())


def slow() -> Iterator[Metric]:
    """Make the others."""
    yield problems((check, len(checks.problems_of(check))) for check in checks.CHECKS if check.slow)
