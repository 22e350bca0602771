"""What an admin sees of jobsd: a line of `systemctl status`, a line of the log, and figures for Prometheus."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from isthmus.jobs.hub import Hub
from isthmus.support.notify import notify

# Between two lines of `systemctl status`, which are signs of life too; and between two of the log.
STATUS_S, LOG_S = 10.0, 300.0
QUESTIONS = ("squeue", "sinfo", "scontrol")
COUNTS = ("failures", "refused", "slow", "surplus", "turned_away")

_log = logging.getLogger(__name__)


def status(hub: Hub, before: Counter[str], passed_s: float) -> str:
    """Return one line: who is there, and what was asked since the counts were `before`."""
    kubelets, accounts = hub.size
    asked = ", ".join(f"{(hub.counts[name] - before[name]) / passed_s:.2f} {name}" for name in QUESTIONS)
    other = "".join(f", {hub.counts[name] - before[name]} {name}" for name in COUNTS if hub.counts[name] > before[name])
    age = f"{hub.age_s:.0f} s" if hub.age_s < float("inf") else "none"
    return f"kubelets: {kubelets} of {accounts} accounts; asked a second: {asked}; age of the view: {age}{other}"


def metrics(hub: Hub) -> str:
    """Return the figures in Prometheus' text format (0.0.4)."""
    kubelets, accounts = hub.size
    lines = ["# TYPE isthmus_jobsd_questions_total counter"]
    lines += [f'isthmus_jobsd_questions_total{{program="{name}"}} {hub.counts[name]}' for name in QUESTIONS]
    for name in COUNTS:
        lines += [f"# TYPE isthmus_jobsd_{name}_total counter", f"isthmus_jobsd_{name}_total {hub.counts[name]}"]
    gauges: dict[str, float] = {"kubelets": kubelets, "accounts": accounts}
    if hub.age_s < float("inf"):
        gauges["view_age_seconds"] = round(hub.age_s, 3)
    for name, value in gauges.items():
        lines += [f"# TYPE isthmus_jobsd_{name} gauge", f"isthmus_jobsd_{name} {value}"]
    return "\n".join([*lines, ""])


async def export(hub: Hub, say: Callable[..., None] = notify, clock: Callable[[], float] = time.monotonic) -> None:
    """Tell systemd and the log, for ever."""
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
