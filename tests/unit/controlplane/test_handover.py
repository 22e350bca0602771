"""A control plane near its time limit: its successor gets a place while it still serves."""

import asyncio

import pytest

from isthmus.controlplane.handover import Handover, Pauses, Slurm, delay_s, until_there_is_room
from isthmus.controlplane.layout import JOB_NAME
from tests.support import virtual_time
from tests.support.fakes.slurm import FakeSlurm

QUICK = Pauses(0.001, 0.002)


class Queue(FakeSlurm):
    """Jobs of a busy Slurm: each look is one step of a story."""

    def __init__(self, *story):
        super().__init__()
        self.own = self.add(JOB_NAME).id
        self.story, self.seen = list(story), []

    def own_jobs(self):
        self.seen.append([job.state for job in super().own_jobs() if job.id != self.own])
        step = self.story.pop(0) if self.story else lambda: None
        step()
        return super().own_jobs()

    def successor(self, state):
        def step():
            self.set(list(self.jobs.values())[-1], state=state)

        return step

    def lose(self):
        del self.jobs[list(self.jobs)[-1]]

    @property
    def slurm(self):
        return Slurm(self.own_jobs, lambda: self.submit([f"--job-name={JOB_NAME}"], ""))

    def handover(self, delay_s=0.0):
        return Handover(self.slurm, self.own, lambda: delay_s, QUICK)

    def hand_over(self):
        return asyncio.run(asyncio.wait_for(until_there_is_room(self.slurm, self.own, QUICK), 10))


def nothing():
    """The queue stays as it is."""


def silent():
    raise OSError("slurmctld does not answer")


@pytest.mark.parametrize("state", ["RUNNING", "CONFIGURING"])
def test_it_serves_until_its_successor_has_a_place(state):
    queue = Queue(nothing)
    pending = queue.successor("PENDING")
    queue.story += [pending, nothing, nothing, queue.successor(state)]
    assert queue.hand_over() == "2"
    assert (len(queue.submitted), len(queue.story)) == (1, 0)


def test_successor_is_submitted_until_slurm_takes_it():
    queue = Queue(silent, silent)
    queue.refusal = "Unable to contact slurm controller"
    queue.story += [nothing, lambda: setattr(queue, "refusal", ""), nothing]
    assert queue.hand_over() == "2"
    assert len(queue.submitted) == 1


def test_successor_that_goes_is_followed_by_another():
    """Someone cancels it, or it fails in its prolog."""
    queue = Queue(nothing)
    queue.story += [queue.successor("PENDING"), queue.lose, queue.successor("PENDING"), queue.successor("RUNNING")]
    queue.hand_over()
    assert len(queue.submitted) == 2


def test_successor_that_waits_already_is_enough():
    queue = Queue()
    queue.add(JOB_NAME, "PENDING")
    queue.add("web", "RUNNING")
    queue.add(JOB_NAME, "COMPLETING")
    queue.story = [nothing, lambda: queue.set(queue.jobs["2"], state="RUNNING")]
    assert (queue.hand_over(), queue.submitted) == ("2", [])


def test_last_look_replaces_a_successor_that_failed():
    """It waited for the address in its prolog, longer than that waits for it."""
    queue = Queue(nothing, silent, nothing)
    leaving, left = queue.handover(), []

    async def leave():
        leaving.start(lambda: left.append(True))
        while not left:
            await asyncio.sleep(0.001)

    queue.add(JOB_NAME, "RUNNING")
    asyncio.run(leave())
    queue.lose()
    leaving.insist()
    leaving.insist()
    assert len(queue.submitted) == 1


def test_nobody_who_ends_the_job_gets_a_successor():
    queue = Queue()
    leaving = queue.handover(delay_s=60)

    async def end(clock):
        leaving.start(lambda: pytest.fail("it went on"))
        leaving.stop()
        await asyncio.sleep(3600)

    virtual_time.run(end)
    leaving.insist()
    assert (queue.submitted, queue.seen) == ([], [])


@pytest.mark.parametrize(
    ("start", "end", "now", "expected"),
    [
        # Shorter than twice the time for it; about to end; a signal by hand; a Slurm that does not say.
        ("0", "1000", 100, 400),
        ("0", "1000", 600, 0),
        ("0", "100000", 100, 0),
        ("", "1000", 0, 0),
        ("x", "y", 0, 0),
    ],
)
def test_no_job_hands_over_in_the_first_half_of_its_time(start, end, now, expected):
    environment = {"SLURM_JOB_START_TIME": start, "SLURM_JOB_END_TIME": end}
    assert delay_s({key: value for key, value in environment.items() if value}, 900, now) == expected
