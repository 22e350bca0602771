"""Status of jobsd: a line of `systemctl status`, a line of the log, and Prometheus metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from isthmus.jobs.hub import Hub
from isthmus.support.notify import notify

# Between two lines of `systemctl status`, which are signs of life too; and between two of the log.
STATUS_S, LOG_S = 10.0, 300.0
QUESTIONS = ("squeue", "sinfo", "scontrol")
COUNTS = {
    "failures": "Questions that Slurm did not answer.",
    "refused": "Connections whose credential was refused.",
    "slow": "Kubelets that did not read in time, and were dropped.",
    "surplus": "Connections beyond what an address or an account may have.",
    "turned_away": "Kubelets that were turned away, as Slurm hides jobs from jobsd.",
}

_log = logging.getLogger(__name__)


def status(hub: Hub, before: Counter[str], passed_s: float) -> str:
    """Return one line: who is there, and what was asked since the counts were `before`."""
    kubelets, accounts = hub.size
    asked = ", ".join(f"{(hub.counts[name] - before[name]) / passed_s:.2f} {name}" for name in QUESTIONS)
    other = "".join(f", {hub.counts[name] - before[name]} {name}" for name in COUNTS if hub.counts[name] > before[name])
    age = f"{hub.age_s:.0f} s" if hub.age_s < float("inf") else "none"
    return f"kubelets: {kubelets} of {accounts} accounts; asked a second: {asked}; age of the view: {age}{other}"


class HubMetrics(Collector):
    """Gives the figures of a hub as they are when Prometheus asks."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def collect(self) -> Iterator[Metric]:
        """Give them."""
        hub = self._hub
        asked = CounterMetricFamily(_name("questions"), "Questions that Slurm was asked.", labels=["program"])
        for name in QUESTIONS:
            asked.add_metric([name], hub.counts[name])
        yield asked
        for name, what in COUNTS.items():
            yield CounterMetricFamily(_name(name), what, hub.counts[name])
        kubelets, accounts = hub.size
        yield GaugeMetricFamily(_name("kubelets"), "Kubelets that are connected.", kubelets)
        yield GaugeMetricFamily(_name("accounts"), "Accounts that have a kubelet connected.", accounts)
        if hub.age_s < float("inf"):
            yield GaugeMetricFamily(_name("view_age_seconds"), "Age of what is known of Slurm's jobs.", hub.age_s)


def _name(name: str) -> str:
    return f"isthmus_jobsd_{name}"


async def export(hub: Hub, say: Callable[..., None] = notify, clock: Callable[[], float] = time.monotonic) -> None:
    """Notify systemd and write to the log, for ever."""
    shown, logged = (clock(), Counter(hub.counts)), (clock(), Counter(hub.counts))
    while True:
        await asyncio.sleep(STATUS_S)
        now_s = clock()
        say("WATCHDOG=1", f"STATUS={status(hub, shown[1], now_s - shown[0])}")
        shown = now_s, Counter(hub.counts)
        if now_s - logged[0] >= LOG_S:
            # Nothing to say of nobody.
            if hub.size[0] or hub.counts != logged[1]:
                _log.info("%s", status(hub, logged[1], now_s - logged[0]))
            logged = now_s, Counter(hub.counts)
