"""How often a hundred kubelets ask Slurm together, by their own loops: with jobsd, without it, and when it goes."""

import asyncio
import random
from types import SimpleNamespace

import pytest

from isthmus.clients.job_feed import FeedError
from isthmus.jobs.hub import Hub
from isthmus.kubelet.node import loop as node_loop
from isthmus.kubelet.node.loop import NodeLoop
from isthmus.kubelet.slurm.feed import Feed
from isthmus.kubelet.slurm.jobs import Jobs
from tests.support import virtual_time
from tests.support.fakes.pod_jobs import OFFER
from tests.support.fakes.shared_slurm import SharedSlurm, UserSlurm, wired
from tests.support.pods.objects import SETTINGS
from tests.unit.kubelet.test_node import HOST

KUBELETS = 100
# A question of an offer is a sinfo and a sacctmgr.
OWN_OFFER = 2
# isthmus-networkd of the controller, while any job has a pod network: isthmus.network.main, RELEASE_S.
NETWORKD_A_S = 1 / 3


class Api:
    """Takes what a node's status is."""

    def __init__(self):
        self.node = {"metadata": {}, "spec": {}, "status": {}}

    async def patch(self, path, body, kind=None):
        self.node = {**self.node, **body}

    async def get(self, path):
        return self.node


class Site:
    """A Slurm, jobsd, and many kubelets with a pod each."""

    def __init__(self, clock, *, has_jobsd):
        self.slurm, self.is_there = SharedSlurm(), has_jobsd
        self.clock, self.hub = clock, Hub(self.slurm, clock)
        self.kubelets = [self._kubelet(uid) for uid in range(2000, 2000 + KUBELETS)]

    def _kubelet(self, uid):
        feed = Feed(wired(self.hub, uid, lambda: self.is_there), self.clock)
        jobs = Jobs(UserSlurm(self.slurm, uid), clock=self.clock, feed=feed)
        loop = NodeLoop(Api(), SimpleNamespace(settings=SETTINGS), HOST, self._offer, jobs.quiet_s, feed)
        comment = f"pod-{uid}"
        self.slurm.set(uid, str(uid), "RUNNING", comment)
        jobs.watch(comment, str(uid), lambda found: None)
        jobs.attend(comment)
        return SimpleNamespace(uid=uid, comment=comment, jobs=jobs, feed=feed, node=loop)

    def _offer(self):
        self.slurm.asked["own offer"] += OWN_OFFER
        return OFFER

    async def busy(self):
        """Each kubelet hears of something every other second: a probe that flaps is enough."""
        while True:
            for number, each in enumerate(self.kubelets):
                each.jobs.hurry()
                state = "RUNNING" if int(self.clock()) % 4 else "SUSPENDED"
                self.slurm.set(each.uid, str(each.uid), state, each.comment)
                if number % 10 == 9:
                    await asyncio.sleep(0.2)

    def loops(self):
        yield self.hub.run()
        for each in self.kubelets:
            yield from (each.jobs.run(), each.feed.run(), each.node.status())


def simulated(use, monkeypatch, *, has_jobsd, is_busy):
    """Run the site beside `use`."""
    virtual_time.inline(monkeypatch, took_s=0.05)
    random.seed(7)

    async def main(clock):
        monkeypatch.setattr(node_loop, "time", SimpleNamespace(monotonic=clock))
        site = Site(clock, has_jobsd=has_jobsd)
        tasks = [asyncio.create_task(each) for each in (*site.loops(), *([site.busy()] if is_busy else []))]
        try:
            return await use(site)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return virtual_time.run(main)


async def a_second(site, seconds):
    """Return the questions a second from now on."""
    before = site.slurm.asked.total()
    await asyncio.sleep(seconds)
    return (site.slurm.asked.total() - before) / seconds + NETWORKD_A_S


@pytest.mark.parametrize(("is_busy", "after_s", "most"), [(True, 50, 5.0), (False, 1200, 1.0)])
def test_hundred_kubelets_with_jobsd(monkeypatch, is_busy, after_s, most):
    async def use(site):
        await asyncio.sleep(after_s)
        return await a_second(site, 1100 if not is_busy else 100), all(each.feed.usable() for each in site.kubelets)

    rate, usable = simulated(use, monkeypatch, has_jobsd=True, is_busy=is_busy)
    assert usable
    assert rate <= most


def test_without_jobsd_they_ask_no_more_than_before_there_was_one(monkeypatch):
    """98 a second, here, of kubelets whose pods report every other second."""

    async def use(site):
        await asyncio.sleep(30)
        return await a_second(site, 100)

    rate = simulated(use, monkeypatch, has_jobsd=False, is_busy=True)
    assert 20 <= rate <= 98


def test_kubelets_that_lose_jobsd_do_not_ask_in_one_moment(monkeypatch):
    async def lose(site):
        await asyncio.sleep(60)
        site.is_there = False
        for one in [*site.hub._subscribers]:
            one.end("jobsd stops")
        return [await a_second(site, 1) for _ in range(12)]

    each_second = simulated(lose, monkeypatch, has_jobsd=True, is_busy=True)
    assert sum(each_second) / len(each_second) <= 98
    assert each_second[0] <= KUBELETS / 3


def test_jobsd_that_restarts_costs_less_than_asking(monkeypatch):
    """All come back within seconds; nobody asks meanwhile who need not."""

    async def restart(site):
        await asyncio.sleep(60)
        for one in [*site.hub._subscribers]:
            one.end("jobsd restarts")
        await asyncio.sleep(30)
        usable = all(each.feed.usable() for each in site.kubelets)
        return usable, await a_second(site, 60)

    usable, rate = simulated(restart, monkeypatch, has_jobsd=True, is_busy=True)
    assert usable
    assert rate <= 5


def test_connection_that_is_refused_raises(monkeypatch):
    """The bed's own: without jobsd there is no wire."""

    async def use(site):
        with pytest.raises(FeedError):
            await wired(site.hub, 1, lambda: site.is_there)()

    simulated(use, monkeypatch, has_jobsd=False, is_busy=False)
