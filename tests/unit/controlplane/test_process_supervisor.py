"""Programs that hang, and homes that take no log."""

import asyncio
import sys
import threading
import time

import pytest

from isthmus.controlplane import process_supervisor
from isthmus.controlplane.process_supervisor import Keeper, Program, shorten
from tests.support.wait import wait


def keep(programs, logs, until):
    """Keep programs until something is so."""

    async def both():
        keeper = Keeper(programs, logs)
        running = asyncio.create_task(keeper.run())
        async with asyncio.timeout(60):
            while not until(keeper):
                await asyncio.sleep(0.05)
            keeper.stop()
            await running
        return keeper

    return asyncio.run(both())


def sleeper(**parts):
    return Program("one", (sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"), **parts)


def test_program_that_hangs_is_started_again(tmp_path):
    answers, ended_after = [True, False, True, *[False] * 3], []
    checks = {"is_alive": lambda: answers.pop(0) if answers else True, "check_s": 0.01, "hung_after": 3}

    def until(keeper):
        if keeper.conditions["one"].state == "backoff":
            ended_after.append(len(answers))
        return keeper.conditions["one"].restarts

    keeper = keep([sleeper(is_ready=lambda: True, **checks)], tmp_path, until)
    # Three in a row, and not three in all.
    assert (keeper.conditions["one"].restarts, ended_after[0]) == (1, 0)


@pytest.mark.parametrize("folder", ["", "missing"])
def test_program_runs_whether_its_log_can_be_written(tmp_path, folder):
    ready = time.monotonic() + 0.5
    one = sleeper(is_ready=lambda: time.monotonic() > ready)
    keeper = keep([one], tmp_path / folder, lambda found: found.conditions["one"].state == "ready")
    assert keeper.conditions["one"].restarts == 0
    if not folder:
        assert (tmp_path / "one.log").read_text() == "here\n"


def test_log_of_the_job_keeps_its_last_part(tmp_path, monkeypatch):
    monkeypatch.setattr(process_supervisor, "LOG_BYTES", 10)
    log = tmp_path / "job.log"
    shorten(log)
    with log.open("a") as writer:
        for text in ("0123456789", "abc"):
            writer.write(text)
            writer.flush()
            shorten(log)
        # Who has it open, as slurmstepd does, goes on at its new end.
        writer.write("more")
    assert (log.read_text(), (tmp_path / "job.log.1").read_text()) == ("more", "3456789abc")


def test_home_that_takes_no_lines_holds_up_nobody(tmp_path, monkeypatch):
    answers, log = threading.Event(), tmp_path / "one.log"
    real = process_supervisor.RotatingFileHandler.emit

    def emit(handler, record):
        answers.wait(20)
        real(handler, record)

    monkeypatch.setattr(process_supervisor.RotatingFileHandler, "emit", emit)
    monkeypatch.setattr(process_supervisor, "_LINES", 5)
    with process_supervisor._log_file(log) as hear:
        for number in range(20):
            hear(str(number))
        answers.set()
        wait(lambda: log.exists() and len(log.read_text().splitlines()) >= 5, interval_s=0.01)
        hear("last")
    *kept, marker, last = log.read_text().splitlines()
    assert (kept, last) == ([str(number) for number in range(len(kept))], "last")
    assert marker == f"[isthmus] {20 - len(kept)} lines are missing: the home did not take them"
