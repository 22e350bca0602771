"""A supervisor that nobody answers."""

import asyncio
import json

from isthmus.supervisor import main
from isthmus.supervisor.facts import Facts


def test_job_that_is_not_told_what_to_run_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(main, "PLAN_S", 0.2)
    monkeypatch.setattr(main, "LAST_WORD_S", 0.1)

    async def run():
        return await main.Supervisor(tmp_path, None, Facts("7", "c1", "127.0.0.1", "127.0.0.1")).run()

    assert asyncio.run(run()) == 1
    told = json.loads((tmp_path / "report.json").read_text())
    assert (told["phase"], told["error"]["reason"]) == ("ended", "NoPlan")
    assert "`isthmus up` starts one" in told["error"]["message"]
