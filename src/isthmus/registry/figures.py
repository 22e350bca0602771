"""What isthmus-tokend counts; isthmus-exporter asks for it on the service's own socket, which nginx leads nobody to."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from isthmus.registry.room import Disk
from isthmus.support import metrics


class What(StrEnum):
    """What is asked for."""

    TOKEN = "token"  # noqa: S105
    WRITE = "write"
    IMAGES = "images"
    ACCESS = "access"


class Outcome(StrEnum):
    """What becomes of a request."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


class Figures:
    """Counts requests, without accounts."""

    def __init__(self) -> None:
        self._registry = metrics.registry()
        self._requests = Counter(
            "isthmus_registry_requests",
            "Requests to isthmus-tokend: for tokens, to write, for a user's images, about access; refused for who asks "
            "or for want of room, failed by the registry's disk.",
            ["what", "outcome"],
            registry=self._registry,
        )
        for what in What:
            for outcome in Outcome:
                self._requests.labels(what, outcome)

    def count(self, what: What, outcome: Outcome) -> None:
        """Count a request."""
        self._requests.labels(what, outcome).inc()

    def page(self, disk: Disk, accounts: int) -> str:
        """Return all of it, for Prometheus.

        Args:
            disk: the registry's.
            accounts: that may log in.
        """
        return metrics.text(self._registry) + metrics.text(metrics.Families(_state(disk, accounts)))


def _state(disk: Disk, accounts: int) -> Iterator[Metric]:
    for name, meaning, value in (
        ("disk_free_bytes", "What the registry's disk has left.", disk.free_bytes),
        ("disk_reserve_bytes", "What users leave of it: with less, nobody's push is taken.", disk.reserve_bytes),
        ("accounts", "Accounts of the registry.", accounts),
    ):
        yield GaugeMetricFamily(f"isthmus_registry_{name}", meaning, value=value)
