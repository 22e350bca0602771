"""The feed of jobsd and a kubelet's jobs: it is trusted where it may be, and done without where it may not."""

import asyncio
import contextlib

import pytest

from isthmus.clients.job_feed import FeedError
from isthmus.jobs.hub import Hub
from isthmus.kubelet.slurm.feed import Feed
from isthmus.kubelet.slurm.jobs import Jobs
from isthmus.model.job_feed import Delta, Demand, Figures, Phase, Update
from isthmus.model.pod_job import JobState
from tests.support import virtual_time
from tests.support.fakes.shared_slurm import SharedSlurm, UserSlurm, wired

ALICE = 1001
UID = "11111111-2222-3333-4444-555555555555"


@pytest.fixture(autouse=True)
def inline(monkeypatch):
    virtual_time.inline(monkeypatch, took_s=0.02)


class Bed:
    """A hub, and a kubelet's jobs with its feed."""

    def __init__(self, clock, connect=None):
        self.slurm, self.is_there, self.clock = SharedSlurm(), True, clock
        self.hub = Hub(self.slurm, clock)
        connect = connect or wired(self.hub, ALICE, lambda: self.is_there)
        self.feed = Feed(connect, clock, lambda: 0.5)
        self.jobs = Jobs(UserSlurm(self.slurm, ALICE), clock=clock, feed=self.feed, chance=lambda: 0.5)
        self.reported = []

    def watch(self, number="7"):
        self.jobs.watch(UID, number, lambda found: self.reported.append((self.clock(), found.state)))

    @property
    def own(self):
        return self.slurm.asked["own squeue"]

    @contextlib.asynccontextmanager
    async def running(self):
        tasks = [asyncio.create_task(each.run()) for each in (self.hub, self.feed, self.jobs)]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def on_bed(use, connect=None):
    async def main(clock):
        async with Bed(clock, connect).running() as bed:
            return await use(bed)

    return virtual_time.run(main)


def states(bed):
    return [state for _, state in bed.reported]


def test_change_is_reported_within_a_second_and_slurm_is_not_asked():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "PENDING", UID)
        bed.watch()
        await asyncio.sleep(5)
        late = []
        for state in ("RUNNING", "COMPLETED"):
            await asyncio.sleep(3.3)
            changed_s = bed.clock()
            bed.slurm.set(ALICE, "7", state, UID)
            await asyncio.sleep(1.2)
            late.append(bed.reported[-1][0] - changed_s)
        return states(bed), late, bed.own

    found, late, own = on_bed(use)
    assert found == [JobState.PENDING, JobState.RUNNING, JobState.COMPLETED]
    assert max(late) <= 1.1
    assert own == 0


def test_find_waits_for_a_question_that_begins_from_now_on():
    async def use(bed):
        await asyncio.sleep(3.5)
        searching = asyncio.create_task(bed.jobs.find(UID))
        bed.slurm.set(ALICE, "7", "PENDING", UID)
        found = await searching
        return found.id, bed.own

    assert on_bed(use) == ("7", 0)


def test_job_that_the_feed_does_not_show_is_asked_for_and_the_feed_done_without():
    """Nonsense: Slurm has the job, and jobsd says that it has not."""

    async def use(bed):
        await asyncio.sleep(2)
        bed.hub._slurm.queue = lambda users: {uid: {} for uid in users}
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(30)
        return states(bed), bed.feed.usable()

    assert on_bed(use) == ([JobState.RUNNING], False)


def test_job_is_gone_only_when_slurm_says_so_too():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(10)
        bed.slurm.rows.clear()
        await asyncio.sleep(50)
        before = states(bed)
        await asyncio.sleep(100)
        return before, states(bed), bed.own, bed.feed.usable()

    before, after, own, usable = on_bed(use)
    assert before == [JobState.RUNNING]
    assert after == [JobState.RUNNING, JobState.GONE]
    assert own <= 10
    assert usable


def test_id_that_slurm_gave_out_again_is_asked_for_before_it_is_gone():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "RUNNING", "another pod")
        bed.watch()
        await asyncio.sleep(30)
        return states(bed), bed.own

    assert on_bed(use) == ([JobState.GONE], 1)


def test_ended_job_that_leaves_the_queue_is_asked_for_no_more():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "COMPLETED", UID)
        bed.watch()
        await asyncio.sleep(10)
        bed.slurm.rows.clear()
        await asyncio.sleep(600)
        return states(bed), bed.own

    assert on_bed(use) == ([JobState.COMPLETED], 0)


def test_feed_that_is_away_is_done_without_and_comes_back():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "PENDING", UID)
        bed.watch()
        await asyncio.sleep(5)
        bed.is_there = False
        for one in [*bed.hub._subscribers]:
            one.end("restart")
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        await asyncio.sleep(20)
        away, own = states(bed), bed.own
        bed.is_there = True
        await asyncio.sleep(90)
        back = bed.own
        bed.slurm.set(ALICE, "7", "COMPLETED", UID)
        bed.jobs.hurry()
        await asyncio.sleep(2)
        return away, own, bed.own - back, states(bed), bed.feed.usable()

    away, own, more, found, usable = on_bed(use)
    assert away == [JobState.PENDING, JobState.RUNNING]
    # As often as it would without a feed: in 20 s once in 1.5 at most.
    assert 1 <= own <= 14
    assert more == 0
    assert found[-1] is JobState.COMPLETED
    assert usable


def test_feed_that_was_never_there_holds_nothing_up():
    async def refused():
        raise FeedError("refused")

    async def use(bed):
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(3)
        return bed.reported

    ((reported_s, state),) = on_bed(use, refused)
    assert (state, reported_s <= 2.1) == (JobState.RUNNING, True)


def test_silent_slurmctld_is_left_alone_for_a_minute_and_nothing_is_gone():
    async def use(bed):
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(5)
        bed.slurm.silent = True
        await asyncio.sleep(55)
        early = bed.own
        await asyncio.sleep(300)
        late = bed.own
        bed.slurm.silent = False
        await asyncio.sleep(60)
        return early, late, states(bed), bed.feed.usable()

    early, late, found, usable = on_bed(use)
    assert early == 0
    assert late >= 1
    assert found == [JobState.RUNNING]
    assert usable


class Hostile:
    """A connection that says what it is given."""

    def __init__(self, *updates):
        self.updates = [*updates]

    async def read(self, timeout_s):
        await asyncio.sleep(0.1)
        if self.updates:
            return self.updates.pop(0)
        await asyncio.sleep(timeout_s)
        raise FeedError("silent")

    def write(self, demand):
        pass

    def close(self):
        pass


ROW = ("7", "RUNNING", "c1", "1700000000", "N/A", "None", UID)
NONSENSE = {
    "a change of nothing": [Update(0, 0.0, jobs=Delta({"7": ROW}))],
    "no jobs": [Update(0, 0.0)],
    "rows that are none": [Update(0, 0.0, jobs=Delta({"7": ("x",), "8": ()}, whole=True))],
    "an old view": [Update(0, 10_000.0, jobs=Delta({"7": ROW}, whole=True))],
    "nothing after the first words": [Update(0, 0.0, jobs=Delta({}, whole=True))],
    "states of nowhere": [Update(0, 0.0, jobs=Delta({"9": ("9", "EXPEDITED", *ROW[2:6], "x")}, whole=True))],
}


@pytest.mark.parametrize("updates", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_leaves_the_kubelet_as_it_would_be_without(updates):
    async def connect():
        return Hostile(*updates)

    async def use(bed):
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(120)
        return states(bed)

    assert on_bed(use, connect) == [JobState.RUNNING]


@pytest.mark.parametrize(("age_s", "usable"), [(1.0, True), (599.0, True), (601.0, False)])
def test_view_that_nobody_renews_is_done_without(age_s, usable):
    async def connect():
        return Hostile(Update(0, age_s, jobs=Delta({}, whole=True)))

    async def use(bed):
        await asyncio.sleep(0.2)
        return bed.feed.usable()

    assert on_bed(use, connect) is usable


def test_state_of_a_newer_slurm_hides_no_other_job():
    async def use(bed):
        bed.slurm.set(ALICE, "6", "EXPEDITED", "x")
        bed.slurm.set(ALICE, "7", "RUNNING", UID)
        bed.watch()
        await asyncio.sleep(3)
        return states(bed), bed.own

    assert on_bed(use) == ([JobState.RUNNING], 0)


def test_figures_are_reported_once_and_lost_without_a_connection():
    reported = Figures({Phase.RUNNING: 2})

    async def use(bed):
        bed.feed.report(reported)
        await asyncio.sleep(1)
        before = bed.hub.figures
        bed.feed.report(reported)
        bed.feed.want(7.0)
        (one,) = bed.hub._subscribers
        return before, bed.hub.figures, one.demand

    assert on_bed(use) == ({}, {ALICE: reported}, Demand(7.0))
