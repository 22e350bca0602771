"""One view for all: who is asked for, who gets which report, and what a silent slurmctld means."""

import asyncio

import pytest

from isthmus.clients.slurm.commands import SlurmError
from isthmus.jobs import hub as hubs
from isthmus.jobs.hub import Hub
from isthmus.model.job_feed import Demand
from tests.support import virtual_time
from tests.support.fakes.shared_slurm import NODES, SharedSlurm

ALICE, BOB = 1001, 1002


@pytest.fixture(autouse=True)
def inline(monkeypatch):
    virtual_time.inline(monkeypatch)


@pytest.fixture
def slurm():
    made = SharedSlurm()
    made.set(ALICE, "1", "RUNNING", "pod-1")
    made.set(BOB, "2", "RUNNING", "pod-2")
    return made


def beside(slurm, use):
    """Run a hub beside `use`, in virtual time."""

    async def both(clock):
        hub = Hub(slurm, clock)
        task = asyncio.create_task(hub.run())
        try:
            return await use(hub, clock)
        finally:
            task.cancel()

    return virtual_time.run(both)


async def next_update(hub, subscriber):
    await subscriber.due.wait()
    return hub.update(subscriber)


async def next_jobs(hub, subscriber):
    """Nodes come by themselves, in between."""
    while not (update := await next_update(hub, subscriber)).jobs:
        pass
    return update.jobs


def ended(words):
    raise AssertionError(words)


def test_each_is_reported_his_own_jobs_alone(slurm):
    async def use(hub, clock):
        alice, bob = hub.subscribe(ALICE, ended), hub.subscribe(BOB, ended)
        return [(await next_update(hub, one)).jobs for one in (alice, bob)]

    mine, his = beside(slurm, use)
    assert (set(mine.rows), set(his.rows)) == ({"1"}, {"2"})
    assert mine.whole


def test_nobody_is_no_question(slurm):
    async def use(hub, clock):
        await asyncio.sleep(3600)
        before = slurm.asked.total()
        hub.unsubscribe(hub.subscribe(ALICE, ended))
        await asyncio.sleep(3600)
        return before

    assert beside(slurm, use) <= 1
    assert slurm.asked["squeue"] + slurm.asked["sinfo"] == 0


@pytest.mark.parametrize(("pause_s", "questions"), [(0.1, 60), (1.0, 60), (5.0, 12), (300.0, 1)])
def test_slurm_is_asked_as_often_as_the_one_in_the_greatest_hurry_needs(slurm, pause_s, questions):
    async def use(hub, clock):
        for uid in range(1000, 1100):
            hub.demand(hub.subscribe(uid, ended), Demand(300.0))
        hub.demand(hub.subscribe(ALICE, ended), Demand(pause_s))
        await asyncio.sleep(60)

    beside(slurm, use)
    assert abs(slurm.asked["squeue"] - questions) <= 1


def test_answer_was_asked_after_the_request(slurm):
    """What was under way when the request came does not count."""

    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await next_jobs(hub, alice)
        hub.demand(alice, Demand(300.0, 7))
        began_s = clock()
        while (await next_update(hub, alice)).asked < 7:
            pass
        return clock() - began_s

    assert 0.9 <= beside(slurm, use) <= 1.01


def test_request_during_a_question_is_for_the_next_one(slurm, monkeypatch):
    virtual_time.inline(monkeypatch, took_s=0.1)

    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await asyncio.sleep(0.15)
        hub.demand(alice, Demand(300.0, 1))
        first = await next_update(hub, alice)
        while (await next_update(hub, alice)).asked < 1:
            assert slurm.asked["squeue"] == 1
        return first.asked, slurm.asked["squeue"]

    assert beside(slurm, use) == (0, 2)


def test_only_what_changed_is_reported(slurm):
    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await next_update(hub, alice)
        hub.demand(alice, Demand(1.0))
        slurm.set(ALICE, "3", "PENDING", "pod-3")
        slurm.set(BOB, "4", "PENDING", "pod-4")
        first = await next_jobs(hub, alice)
        del slurm.rows[ALICE]["1"]
        return first, await next_jobs(hub, alice)

    added, removed = beside(slurm, use)
    assert (set(added.rows), added.gone, added.whole) == ({"3"}, (), False)
    assert (set(removed.rows), removed.gone) == (set(), ("1",))


def test_silent_slurmctld_is_not_all_jobs_gone(slurm):
    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await next_update(hub, alice)
        hub.demand(alice, Demand(1.0))
        slurm.silent = True
        silent = await next_update(hub, alice)
        await asyncio.sleep(600)
        asked = slurm.asked["squeue"]
        assert not alice.due.is_set()
        slurm.silent = False
        back = await next_update(hub, alice)
        return silent, asked, back

    silent, asked, back = beside(slurm, use)
    assert (silent.is_answered, silent.jobs) == (False, None)
    assert (back.is_answered, back.jobs) == (True, None)
    assert 50 <= asked <= 70


def test_slurmctld_that_is_back_is_soon_seen(slurm, monkeypatch):
    """While it is away a question takes long to fail."""
    virtual_time.inline(monkeypatch, took_s=lambda: 20.0 if slurm.silent else 0.02)

    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await next_jobs(hub, alice)
        hub.demand(alice, Demand(1.0))
        slurm.silent = True
        await asyncio.sleep(200)
        slurm.silent = False
        back_s = clock()
        while not (await next_update(hub, alice)).is_answered:
            pass
        return clock() - back_s

    assert beside(slurm, use) <= 31


def test_newest_connections_of_an_account_count(slurm):
    async def use(hub, clock):
        reported = []
        for number in range(hubs.EACH_MOST + 2):
            hub.subscribe(ALICE, lambda words, number=number: reported.append(number))
        return reported, hub.size

    assert beside(slurm, use) == ([0, 1], (hubs.EACH_MOST, 1))


def test_too_many_jobs_end_their_own_kubelet_alone(slurm, monkeypatch):
    monkeypatch.setattr(hubs, "JOBS_MOST", 2)
    for number in range(10, 13):
        slurm.set(BOB, str(number), "PENDING", "x")

    async def use(hub, clock):
        reported = []
        alice = hub.subscribe(ALICE, ended)
        hub.subscribe(BOB, reported.append)
        await next_update(hub, alice)
        return reported, hub.size

    reported, size = beside(slurm, use)
    assert "more than 2 jobs" in reported[0]
    assert size == (1, 1)


def test_where_slurm_hides_jobs_nobody_is_reported_none(slurm):
    slurm.hides = frozenset({"jobs"})

    async def use(hub, clock):
        reported = []
        hub.subscribe(ALICE, reported.append)
        await asyncio.sleep(10)
        return reported

    assert "make it an operator" in beside(slurm, use)[0]
    assert slurm.asked["squeue"] == 0


def test_hidden_nodes_are_not_passed_on(slurm):
    slurm.hides = frozenset({"nodes"})

    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        return (await next_update(hub, alice)).nodes

    assert beside(slurm, use) is None
    assert slurm.asked["sinfo"] == 0


def test_what_slurm_hides_is_known_before_anything_is_passed_on(slurm):
    slurm.hidden = lambda: (_ for _ in ()).throw(SlurmError("down"))

    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        await asyncio.sleep(100)
        return alice.due.is_set()

    assert beside(slurm, use) is False
    assert slurm.asked["squeue"] == 0


def test_nodes_are_reported_once_and_when_they_change(slurm):
    async def use(hub, clock):
        alice = hub.subscribe(ALICE, ended)
        hub.demand(alice, Demand(300.0))
        reported = []
        while not reported:
            update = await next_update(hub, alice)
            reported += [update.nodes] if update.nodes else []
        await asyncio.sleep(100)
        assert not alice.due.is_set()
        slurm.nodes = lambda: {key: (*row[:-1], "drained") for key, row in NODES.items()}
        return reported[0], (await next_update(hub, alice)).nodes

    first, then = beside(slurm, use)
    assert first.rows == NODES
    assert then.rows["c1 main*"][-1] == "drained"
