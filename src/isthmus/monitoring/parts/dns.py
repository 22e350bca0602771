"""Figures of this node's CoreDNS: sums over all its blocks, without the addresses that say whose these are."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from isthmus.monitoring.parts.passed import Source
from isthmus.network.dns.records import FIGURES_PORT, HOST_ADDRESS

URL = f"http://{HOST_ADDRESS}:{FIGURES_PORT}/metrics"
NAMES = (
    "coredns_cache_requests_total",
    "coredns_cache_hits_total",
    "coredns_forward_healthcheck_broken_total",
    "coredns_forward_max_concurrent_rejects_total",
    "coredns_panics_total",
    "coredns_proxy_healthcheck_failures_total",
    "coredns_proxy_request_duration_seconds",
)
# Of blocks, one for each user with pods here.
_OF_BLOCKS = frozenset({"server", "view", "zones", "proxy_name"})


def collect() -> Iterator[Metric]:
    """Ask it.

    Raises:
        OSError: it does not answer.
        ValueError: its answer is none in Prometheus' format.
    """
    yield from Source(URL, NAMES, _OF_BLOCKS).collect()
