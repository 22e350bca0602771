"""Rounds of questions to a Slurm in memory: no answer is never gone."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain

import pytest

from isthmus.clients.slurm.pod_jobs import NoAnswerError, RefusedError
from isthmus.kubelet.slurm.jobs import Jobs
from isthmus.model.pod_job import Job, JobState
from tests.support.fakes.pod_jobs import FakeSlurm

UID = "11111111-2222-3333-4444-555555555555"


def job(uid=UID):
    return Job(uid, "/pods/x", (f"--comment={uid}",), "python")


def rounds(slurm, use, clock=time.monotonic):
    """Run rounds as fast as they go beside `use`."""

    async def both():
        asked = Jobs(slurm, busy_s=0.001, clock=clock)
        task = asyncio.create_task(asked.run())
        try:
            async with asyncio.timeout(60):
                return await use(asked)
        finally:
            task.cancel()

    return asyncio.run(both())


async def reported(asked, number, wanted):
    """Wait until a job is reported to be in a state; return all states that were reported."""
    states, there = [], asyncio.Event()

    def take(found):
        states.append(found.state)
        if found.state is wanted:
            there.set()

    asked.watch(UID, number, take)
    await there.wait()
    return states


def test_changes_are_reported_once():
    slurm = FakeSlurm()

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        await reported(asked, number, JobState.RUNNING)
        slurm.end(number)
        return await reported(asked, number, JobState.COMPLETED)

    assert rounds(slurm, use) == [JobState.RUNNING, JobState.COMPLETED]


def test_job_is_found_by_its_pod():
    slurm = FakeSlurm()

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        return number, await asked.find(UID), await asked.find(UID.replace("1", "9"))

    number, found, none = rounds(slurm, use)
    assert (found.id, none) == (number, None)


def test_living_job_is_found_before_an_ended_one():
    slurm = FakeSlurm()

    async def use(asked):
        first = await asked.submit(job(), "#!/bin/sh\n")
        second = await asked.submit(job(), "#!/bin/sh\n")
        slurm.end(first)
        return second, await asked.find(UID), asked.others(UID, first)

    second, found, others = rounds(slurm, use)
    assert (found.id, others) == (second, [second])


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


async def asked_again(asked, slurm):
    """Wait until Slurm was asked twice more: the second question began after the answer to the first was looked at."""
    enough = slurm.questions + 3
    while slurm.questions < enough:
        asked.hurry()
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("answer", "gone"), [([], True), (RefusedError("disabled"), True), (NoAnswerError("down"), False)]
)
def test_job_is_gone_only_after_a_minute_and_when_accounting_answers(answer, gone):
    slurm, clock, states = FakeSlurm(), Clock(), []

    def accounted(numbers):
        if isinstance(answer, Exception):
            raise answer
        return answer

    slurm.accounted = accounted

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        slurm.jobs.clear()
        asked.watch(UID, number, lambda found: states.append(found.state))
        for passed_s in (0, 59, 1, 3600):
            clock.now_s += passed_s
            await asked_again(asked, slurm)
            states.append(passed_s)

    rounds(slurm, use, clock)
    assert states == ([0, 59, JobState.GONE, 1, 3600] if gone else [0, 59, 1, 3600])


def test_silent_slurm_ends_no_job_however_long_that_lasts():
    slurm, clock, states = FakeSlurm(), Clock(), []

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        await reported(asked, number, JobState.RUNNING)
        asked.watch(UID, number, lambda found: states.append(found.state))
        slurm.silent = True
        for _ in range(3):
            clock.now_s += 3600
            await asked_again(asked, slurm)
        assert JobState.GONE not in states
        slurm.silent = False
        slurm.end(number)
        return await reported(asked, number, JobState.COMPLETED)

    assert rounds(slurm, use, clock)[-1] is JobState.COMPLETED


def test_accounting_knows_what_has_left_the_queue():
    slurm = FakeSlurm()

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        ended = replace(slurm.jobs.pop(number).job, state=JobState.TIMEOUT)
        slurm.accounted = lambda numbers: [ended]
        return await reported(asked, number, JobState.TIMEOUT)

    assert rounds(slurm, use) == [JobState.TIMEOUT]


def test_find_waits_for_an_answer():
    slurm = FakeSlurm()
    slurm.silent = True

    async def use(asked):
        search = asyncio.create_task(asked.find(UID))
        done, _ = await asyncio.wait([search], timeout=0.2)
        assert not done
        slurm.silent = False
        return await search

    assert rounds(slurm, use) is None


def test_jobs_that_end_together_are_ended_by_one_call():
    slurm = FakeSlurm()
    slurm.full = True
    uids = [UID.replace("1", str(digit)) for digit in range(2, 10)]

    async def use(asked):
        numbers = [await asked.submit(job(uid), "#!/bin/sh\n") for uid in uids]
        await asyncio.gather(*map(asked.cancel, uids, numbers))
        assert all(one.job.state is JobState.CANCELLED for one in slurm.jobs.values())
        return numbers

    numbers = rounds(slurm, use)
    assert sorted(chain.from_iterable(slurm.cancellations)) == sorted(numbers)
    # The first goes alone, all others while it was under way.
    assert len(slurm.cancellations) <= 2


def test_slurm_that_hangs_holds_up_nothing_else():
    """What waits for slurmctld has threads of its own: the loop's are for the home."""
    slurm, released, begun = FakeSlurm(), threading.Event(), set()

    def hang(name, answer):
        begun.add(name)
        return released.wait(60) and answer

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        slurm.submit = lambda options, script: hang("sbatch", "2")
        slurm.queue, slurm.cancel = lambda: hang("squeue", []), lambda numbers: hang("scancel", None)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        waiting = [asyncio.create_task(asked.submit(job(), "#!/bin/sh\n")) for _ in range(8)]
        waiting += [asyncio.create_task(asked.find(UID)), asyncio.create_task(asked.cancel(UID, number))]
        async with asyncio.timeout(20):
            while len(begun) < 3:
                await asyncio.sleep(0.01)
            assert await asyncio.to_thread(lambda: "read") == "read"
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()

    try:
        rounds(slurm, use)
    finally:
        released.set()


def quiet(attended, quiet_s):
    """Return the pause after a time without any change, and after the supervisor has gone then."""
    now_s = [0.0]
    asked = Jobs(FakeSlurm(), clock=lambda: now_s[0])
    asked.watch(UID, "1", lambda found: None)
    if attended:
        asked.attend(UID)
    now_s[0] = quiet_s
    pauses = [asked.pause_s()]
    asked.unattend(UID)
    asked.stop()
    return [*pauses, asked.pause_s()]


@pytest.mark.parametrize(
    ("attended", "quiet_s", "pauses"),
    [
        (True, 10, [1, 1]),
        (True, 30, [5, 1]),
        (True, 800, [100, 1]),
        (False, 800, [60, 1]),
        (True, 1e6, [300, 1]),
        (False, 1e6, [60, 1]),
    ],
)
def test_slurm_is_asked_less_while_nothing_changes(attended, quiet_s, pauses):
    assert quiet(attended, quiet_s) == pauses


def test_job_that_slurm_misses_is_asked_for():
    slurm, now_s = FakeSlurm(), [0.0]

    async def use():
        asked = Jobs(slurm, clock=lambda: now_s[0])
        asked.watch(UID, "7", lambda found: None)
        asked.attend(UID)
        now_s[0] = 1e6
        before = asked.pause_s()
        await asked.round()
        asked.stop()
        return before, asked.pause_s()

    assert asyncio.run(use()) == (300, 5)


def test_id_that_slurm_gave_out_again_is_another_job():
    """After a Slurm that lost its state: the old pod's job is gone at once, and the new pod's goes on."""
    slurm, old = FakeSlurm(), UID.replace("1", "9")

    async def use(asked):
        number = await asked.submit(job(), "#!/bin/sh\n")
        states = []
        asked.watch(old, number, lambda found: states.append(found.state))
        new = await reported(asked, number, JobState.RUNNING)
        await asked.find(old)
        await asked.cancel(old, number)
        return states, new

    assert rounds(slurm, use) == ([JobState.GONE], [JobState.RUNNING])
    assert slurm.cancellations == []


def test_job_of_an_earlier_kubelet_is_ended_once_it_was_seen():
    slurm = FakeSlurm()
    number = slurm.submit(job().options, "#!/bin/sh\n")

    async def use(asked):
        await asked.cancel(UID, number)
        before = [*slurm.cancellations]
        await asked.find(UID)
        await asked.cancel(UID, number)
        return before, slurm.cancellations

    assert rounds(slurm, use) == ([], [[number]])
