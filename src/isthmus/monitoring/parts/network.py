"""Figures of this node's daemon of the pod networks, out of what it answers root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from isthmus.monitoring.parts.figures import counter, gauge
from isthmus.network.api.client import ROOT_SOCKET, ask
from isthmus.network.api.messages import Metrics, Status

_TIMEOUT_S = 10.0
CLUSTER = {
    "members": "nodes that are members of the pod networks, as this node knows it",
    "users": "users that have a network",
    "jobs": "jobs that have addresses",
    "addresses": "addresses of the pod range",
    "addresses_left": "of them those in no user's block",
}


def read(status: Mapping[str, Any]) -> Iterator[Metric]:
    """Give figures of a daemon's answer.

    Raises:
        KeyError: it is of another version.
    """
    figures, preparations = status["figures"], status["figures"]["preparations"]
    yield gauge("isthmus_network_revision", "revision of etcd that this node follows", status["revision"])
    yield gauge("isthmus_network_pods", "jobs with a pod network on this node", status["pods"])
    yield gauge("isthmus_network_legs", "users with an interface on this node", status["legs"])
    yield gauge("isthmus_network_errors", "parts of the node that are not as etcd wants them", len(status["errors"]))
    for name, meaning in CLUSTER.items():
        yield gauge(f"isthmus_network_{name}", meaning, figures["cluster"][name])
    yield HistogramMetricFamily(
        "isthmus_network_preparation_seconds",
        "time to make a job's network on this node",
        buckets=[(str(bound), float(count)) for bound, count in preparations["buckets"]],
        sum_value=preparations["sum_s"],
    )
    yield counter(
        "isthmus_network_preparation_failures", "jobs whose network could not be made here", preparations["failures"]
    )


def collect() -> Iterator[Metric]:
    """Ask the daemon.

    Raises:
        OSError: it does not answer.
        RequestError: it refuses.
    """
    yield from read(ask(Status(), ROOT_SOCKET, timeout_s=_TIMEOUT_S))
    yield from text_string_to_metric_families(ask(Metrics(), ROOT_SOCKET, timeout_s=_TIMEOUT_S)["text"])
