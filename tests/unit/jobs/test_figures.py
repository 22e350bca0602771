"""What an admin sees of jobsd."""

import asyncio
from collections import Counter

from isthmus.jobs import figures
from isthmus.jobs.hub import Hub
from isthmus.support import metrics
from tests.support import virtual_time
from tests.support.fakes.shared_slurm import SharedSlurm


def test_line_has_rates_and_what_went_wrong():
    hub = Hub(SharedSlurm(), lambda: 0.0)
    hub.counts.update(squeue=50, sinfo=2, refused=3)
    line = figures.status(hub, Counter(squeue=40, refused=3), 10.0)
    assert line == (
        "kubelets: 0 of 0 accounts; asked a second: 1.00 squeue, 0.20 sinfo, 0.00 scontrol; age of the view: none"
    )
    assert "1 slow" in figures.status(Hub(SharedSlurm()), Counter(slow=-1), 10.0)


def test_metrics_are_prometheus_text():
    hub = Hub(SharedSlurm(), lambda: 0.0)
    hub.counts["squeue"] = 7
    page = metrics.text(figures.HubMetrics(hub))
    assert 'isthmus_jobsd_questions_total{program="squeue"} 7.0\n' in page
    assert "isthmus_jobsd_kubelets 0.0\n" in page
    assert "view_age" not in page


def test_systemd_hears_of_it_and_the_log_seldom(monkeypatch, caplog):
    virtual_time.inline(monkeypatch)
    said = []

    async def main(clock):
        hub = Hub(SharedSlurm(), clock)
        tasks = [
            asyncio.create_task(hub.run()),
            asyncio.create_task(figures.export(hub, lambda *w: said.append(w), clock)),
        ]
        hub.subscribe(1001, lambda words: None)
        await asyncio.sleep(605)
        for task in tasks:
            task.cancel()

    with caplog.at_level("INFO"):
        virtual_time.run(main)
    assert len(said) == 60
    assert said[0][0] == "WATCHDOG=1"
    assert said[-1][1].startswith("STATUS=kubelets: 1 of 1 accounts")
    assert len([one for one in caplog.records if "asked a second" in one.message]) == 2
