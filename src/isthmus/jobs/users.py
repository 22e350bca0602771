"""Figures that users' kubelets report, as a file for isthmus-exporter alone.

Not on the page for Prometheus: that one every process of the controller reads, and what a user's cluster does is for
its user and the site's admins. Whose figures they are is the account of the connection; a kubelet says numbers of kinds
that are known here, so the file grows with accounts alone, up to a bound. What a user invents is said of that user
alone.
"""

from __future__ import annotations

import asyncio
import logging
import pwd
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily

from isthmus.jobs.hub import Hub
from isthmus.model.job_feed import Figures, Phase, Stage, Starts
from isthmus.support import durable, metrics
from isthmus.support.threads import Threads

# Between two files.
WRITTEN_S = 30.0
# Accounts in a file, each with up to 13 lines: Prometheus takes 20,000 of a host.
ACCOUNTS_MOST = 1000

_log = logging.getLogger(__name__)
Name = Callable[[int], str]


def name_of(uid: int) -> str:
    """Return an account's name; blocks."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def families(reported: Mapping[int, Figures], name: Name) -> Iterator[Metric]:
    """Give the metrics.

    Args:
        reported: by account.
        name: of an account.
    """
    shown = {name(uid): reported[uid] for uid in sorted(reported)[:ACCOUNTS_MOST]}
    pods = GaugeMetricFamily(
        "isthmus_user_pods", "Pods of users whose kubelets report them, by phase.", labels=["user", "phase"]
    )
    starts = SummaryMetricFamily(
        "isthmus_user_pod_start_seconds",
        "How long each stage of their starts took since the kubelet began: until sbatch answered (submit), the job ran "
        "(queue), the supervisor reported running containers (report), the API server had that status (status).",
        labels=["user", "stage"],
    )
    for user, figures in shown.items():
        for phase in Phase:
            if count := figures.pods.get(phase, 0):
                pods.add_metric([user, phase], count)
        for stage in Stage:
            if (began := figures.starts.get(stage, Starts(0, 0))).count:
                starts.add_metric([user, stage], began.count, began.sum_ms / 1000)
    yield pods
    yield starts
    yield GaugeMetricFamily("isthmus_user_reports", "Accounts whose kubelets report figures.", len(shown))
    beyond = len(reported) - len(shown)
    yield GaugeMetricFamily("isthmus_user_reports_left_out", "Accounts beyond those that are shown.", beyond)


async def write(hub: Hub, path: Path, name: Name = name_of) -> None:
    """Write the file again and again, for ever."""
    threads = Threads("users", 1)
    try:
        while True:
            try:
                await threads.call(_written, hub.figures, path, name)
            except OSError as error:
                _log.warning("users' figures are not written now: %s", error)
            await asyncio.sleep(WRITTEN_S)
    finally:
        threads.stop()


def _written(reported: Mapping[int, Figures], path: Path, name: Name) -> None:
    durable.write(path, metrics.text(metrics.Families([*families(reported, name)])), 0o600)
