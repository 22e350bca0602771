"""Figures of the cluster's registry: whether it answers as its clients ask, and what isthmus-tokend counts.

docker-registry's own metrics stay off: its page of them comes with profiles of its memory, on a TCP port that every
process of the controller reaches, and the daemon has no network but its socket.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from isthmus.clients import http, prometheus
from isthmus.clients.http import Limits, NoAnswerError
from isthmus.monitoring.parts.figures import gauge

SOCKET = Path("/run/isthmus-tokend/socket")
URL = "http://isthmus-tokend/metrics"
_LIMITS = Limits(10.0, 64 << 10)
# The registry asks who one is; nginx alone would say 502.
_ANSWERS = (200, 401)


def answers(url: str, ca: Path = prometheus.CA) -> Iterator[Metric]:
    """Ask by nginx and TLS, without an account.

    Args:
        url: of nginx.
        ca: the authority of its certificate.
    """
    began_s = time.monotonic()
    try:
        tls = ssl.create_default_context(cafile=str(ca))
        is_up = http.ask("GET", f"{url}/v2/", _LIMITS, tls=tls).status in _ANSWERS
    except NoAnswerError:
        is_up = False
    yield from answering(is_up, time.monotonic() - began_s)


def answering(is_up: bool, took_s: float) -> Iterator[Metric]:
    """Give figures of a question."""
    yield gauge("isthmus_registry_up", "whether the cluster's registry answers as its clients ask", is_up)
    yield gauge("isthmus_registry_answer_seconds", "how long the registry took to answer, or not to", took_s)


def collect(socket: Path = SOCKET) -> Iterator[Metric]:
    """Ask isthmus-tokend.

    Raises:
        OSError: it does not answer.
        ValueError: its answer is none in Prometheus' format.
    """
    yield from text_string_to_metric_families(prometheus.figures(URL, socket))
