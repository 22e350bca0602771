"""Figures that users' kubelets report to isthmus-jobsd, from the file that it writes for us alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from isthmus.clients import prometheus

FILE = Path("/run/isthmus-jobsd/users.prom")
# Between two looks: a thousand users have ten thousand lines.
INTERVAL_S = 60.0
# It is written each half minute.
_OLD_S = 150.0


def collect(path: Path = FILE) -> Iterator[Metric]:
    """Read it.

    Raises:
        OSError: it is not there, or an old one.
        ValueError: it is none in Prometheus' format.
    """
    age_s = time.time() - path.stat().st_mtime
    if age_s > _OLD_S:
        raise OSError(f"{path} is {age_s:.0f} s old; isthmus-jobsd writes it no more")
    with path.open(encoding="utf-8") as file:
        text = file.read(prometheus.ANSWER_BYTES)
    yield from text_string_to_metric_families(text)
