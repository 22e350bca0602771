"""A container whose memory limit was hit says so, whichever of its processes the kernel ended, at each start."""

import asyncio
import os
from functools import partial
from types import SimpleNamespace

import pytest

from isthmus.podproto.plan import read
from isthmus.supervisor.containers import container as containers
from isthmus.supervisor.containers.container import Runner
from isthmus.supervisor.containers.logs import LogWriter
from isthmus.supervisor.report import Report
from isthmus.supervisor.runtime import cgroups
from isthmus.supervisor.runtime.processes import Process
from tests.support.fakes import homes
from tests.support.pods.plans import container, plan

EXIT_1, SIGKILL = 1 << 8, 9


class Box:
    """A sandbox of nothing."""

    place, keepers = None, frozenset()

    def kill(self, spared=frozenset()):
        return False

    async def close(self):
        """Nothing is open."""


class Kernel:
    """Starts programs that end by themselves: each with a status, and so many processes killed until then."""

    def __init__(self, folder, story):
        self.file, self.story = folder / "memory.events", list(story)
        self.file.write_text("oom_kill 7\n")

    async def start(self, program, place, streams):
        killed, status = self.story.pop(0)
        ended = asyncio.get_running_loop().create_future()

        def end():
            self.file.write_text(f"oom_kill {7 + killed}\n")
            ended.set_result(status)

        asyncio.get_running_loop().call_later(0.01, end)
        return Process(os.getpid(), ended)


async def nothing(*_):
    return ""


async def boxed(*_):
    return Box()


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """No Apptainer, no pause between starts, and a kernel's figures in a folder."""
    monkeypatch.setattr(containers, "open_sandbox", boxed)
    monkeypatch.setattr(containers, "termination_message", nothing)
    monkeypatch.setattr(containers, "BackOff", lambda: SimpleNamespace(pause_s=lambda ran_s: 0.0))
    monkeypatch.setattr(cgroups, "memory_folder", lambda pid: tmp_path)


def reasons(tmp_path, story, *others, policy="OnFailure"):
    """Run a container through a story; return the reason of each of its ends."""
    made, found = read(plan(container("main", "x"), *others)), []
    one, facts = made.containers[0], {"pod_ip": "10.64.0.2"}
    pod = SimpleNamespace(plan=made, facts=facts, processes=Kernel(tmp_path, story), reached=nothing)
    report = Report(tmp_path / "report.json", {"uid": "u", "job": "1"}, homes.inline)
    report.expect("main", one.image_id, "", one.image_name)

    def changed():
        row = report.content["containers"]["main"]
        if row["state"] == "terminated":
            found.append(row["reason"])

    async def main():
        report.changed = changed
        logs = partial(LogWriter, tmp_path / "logs", run=homes.inline)
        async with asyncio.timeout(20):
            await Runner(pod, one, policy, report, logs).run()

    asyncio.run(main())
    return found


@pytest.mark.parametrize("status", [0, EXIT_1, SIGKILL])
def test_container_says_so_whichever_process_died(tmp_path, status):
    assert reasons(tmp_path, [(1, status)], policy="Never") == ["OOMKilled"]


@pytest.mark.parametrize(("status", "reason"), [(EXIT_1, "Error"), (SIGKILL, "OOMKilled")])
def test_memory_that_containers_share_is_nobodys_fault_alone(tmp_path, status, reason):
    side = container("side", "x")
    assert reasons(tmp_path, [(1, status)], side, policy="Never") == [reason]


def test_each_start_counts_its_own(tmp_path):
    story = [(1, EXIT_1), (2, EXIT_1), (2, EXIT_1), (3, SIGKILL), (3, 0)]
    assert reasons(tmp_path, story) == ["OOMKilled", "OOMKilled", "Error", "OOMKilled", "Completed"]
