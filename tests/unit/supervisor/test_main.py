"""A supervisor that nobody answers."""

import asyncio
import json
import threading

from isthmus.supervisor import main, report
from isthmus.supervisor.facts import Facts


def test_job_that_gets_no_plan_ends(tmp_path):
    timing = main.Timing(last_word_s=0.1, plan_s=0.2)

    async def run():
        return await main.Supervisor(tmp_path, None, Facts("7", "c1", "127.0.0.1", "127.0.0.1"), timing).run()

    assert asyncio.run(run()) == 1
    reported = json.loads((tmp_path / "report.json").read_text())
    assert (reported["phase"], reported["error"]["reason"]) == ("ended", "NoPlan")
    assert "`isthmus up` starts one" in reported["error"]["message"]


def test_silent_home_holds_up_the_end_for_a_moment_only(tmp_path, monkeypatch):
    """Slurm kills half a minute after SIGTERM, and then nothing is in order."""
    answers = threading.Event()
    monkeypatch.setattr(report, "write_whole", lambda *_: answers.wait(60))
    timing = main.Timing(last_word_s=0.1, plan_s=0.1)

    async def run():
        async with asyncio.timeout(20):
            return await main.Supervisor(tmp_path, None, Facts("7", "c1", "127.0.0.1", "127.0.0.1"), timing).run()

    try:
        assert asyncio.run(run()) == 1
    finally:
        answers.set()
