"""The loop that reports figures to isthmus-jobsd."""

import asyncio
from types import SimpleNamespace

from isthmus.kubelet import main
from isthmus.model.job_feed import Phase
from tests.support import virtual_time


def test_kubelet_reports_each_minute_what_there_is_then():
    pods, reports = [], []
    feed = SimpleNamespace(report=lambda figures: reports.append(figures.pods[Phase.RUNNING]))

    async def use(_clock):
        task = asyncio.create_task(main._report(feed, SimpleNamespace(all=lambda: pods)))
        await asyncio.sleep(main.FIGURES_S + 1)
        pods.extend([{"status": {"phase": "Running"}}] * 3)
        await asyncio.sleep(10 * main.FIGURES_S)
        task.cancel()

    virtual_time.run(use)
    assert reports[0] == 0
    assert reports[-1] == 3
    assert 11 <= len(reports) <= 22
