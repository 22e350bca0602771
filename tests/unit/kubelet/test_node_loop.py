"""When Slurm is asked what it offers."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from isthmus.kubelet.node import loop as node_loop
from isthmus.kubelet.node.loop import NodeLoop
from isthmus.kubelet.pods import starting
from isthmus.kubelet.pods.starting import NeverError
from tests.support import virtual_time
from tests.support.fakes.pod_jobs import OFFER
from tests.support.pods.objects import SETTINGS, container, pod
from tests.unit.kubelet.test_node import HOST

LABELS = {True: {"feature.slurm/fast": "true"}, False: {}}


class PreparedError(Exception):
    """The pod is not refused; what comes next is asked."""


@pytest.fixture
def clock(monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(node_loop, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    return now_s


class Slurm:
    """Says what there is, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0
        self.offer = OFFER

    def __call__(self):
        self.asked += 1
        return self.offer


def made(slurm, quiet_s=lambda: 1e9):
    config = SimpleNamespace(settings=SETTINGS)
    return NodeLoop(None, config, HOST, slurm, quiet_s), config


def test_slurm_is_asked_less_often_while_its_offer_stays(clock):
    slurm = Slurm()
    loop, config = made(slurm)
    assert loop.is_due()
    clock[0] = 31.0
    asyncio.run(config.renew())
    due = []
    for later_s in (31, 200, 3600, 3900, 4000):
        clock[0] = 31.0 + later_s
        due.append(loop.is_due())
        if due[-1]:
            asyncio.run(config.renew())
    assert due == [True, True, True, False, True]
    assert slurm.asked == 5


def test_pods_that_change_keep_it_asked(clock):
    slurm = Slurm()
    loop, config = made(slurm, quiet_s=lambda: 0.0)
    clock[0] = 5000.0
    asyncio.run(config.renew())
    clock[0] += 31
    assert loop.is_due()


def test_many_that_would_be_refused_wait_for_one_answer(clock):
    slurm = Slurm()
    loop, config = made(slurm)
    clock[0] = 100.0

    async def many():
        await asyncio.gather(*(config.renew() for _ in range(20)))

    asyncio.run(many())
    assert (slurm.asked, loop.is_due()) == (1, False)


@pytest.mark.parametrize("is_there", [True, False])
def test_pod_is_not_refused_for_a_node_that_has_just_come(is_there):
    """What the pod asks for was not there when Slurm was asked the last time."""

    class Fixed:
        settings = SETTINGS

        async def renew(self):
            self.settings = replace(SETTINGS, features=frozenset({"fast"} if is_there else ()), labels=LABELS[is_there])

        async def runtime_class(self, name):
            raise PreparedError(name)

    class Parts:
        config = Fixed()
        settings = property(lambda self: self.config.settings)

    wanted = pod(container(), nodeSelector={"feature.slurm/fast": "true"}, runtimeClassName="x")
    with pytest.raises(PreparedError if is_there else NeverError):
        asyncio.run(starting.prepare(Parts(), wanted))


class Fed:
    """What jobsd says of nodes."""

    def __init__(self, *states):
        self.is_answered, self.distrusted = True, ""
        self.rows = {name: (name, "main*", "up", "32", "8192", "(null)", "fast", state) for name, state in states}

    def usable(self):
        return not self.distrusted

    def nodes(self):
        return self.rows

    def distrust(self, reason):
        self.distrusted = reason


def fed(feed, slurm, clock):
    """Return a loop that has asked once and has a feed."""
    config = SimpleNamespace(settings=SETTINGS)
    loop = NodeLoop(None, config, HOST, slurm, lambda: 0.0, feed)
    clock[0] = 100.0
    asyncio.run(config.renew())
    return loop, config


def test_nodes_that_jobsd_reports_are_not_asked_for(clock):
    slurm, feed = Slurm(), Fed(("c1", "idle"), ("c2", "drained"))
    loop, config = fed(feed, slurm, clock)
    due = []
    for later_s in (60, 600, 1300):
        clock[0] = 100.0 + later_s
        due.append(loop.is_due())
        loop._take(feed)
    assert (due, slurm.asked) == ([False, False, True], 1)
    assert [one.state for one in loop._slurm.nodes] == ["IDLE", "DRAINED"]
    assert config.settings.features == frozenset({"fast"})


def test_slurm_that_jobsd_cannot_reach_is_not_reachable(clock):
    feed = Fed(("c1", "idle"))
    loop, _ = fed(feed, Slurm(), clock)
    feed.is_answered = False
    loop._take(feed)
    assert loop._slurm is None
    feed.is_answered = True
    loop._take(feed)
    assert loop._slurm is not None


@pytest.mark.parametrize("row", [(), ("c1", "main*"), ("c1", "main*", "up", "many", "8192", "(null)", "x", "idle")])
def test_nodes_that_cannot_be_read_are_asked_for_again(clock, row):
    slurm, feed = Slurm(), Fed()
    feed.rows = {"c1": row}
    loop, _ = fed(feed, slurm, clock)
    loop._take(feed)
    clock[0] += 31
    assert (bool(feed.distrusted), loop.is_due()) == (True, True)
    assert loop._slurm is OFFER


def test_kubelets_that_lose_jobsd_do_not_ask_at_once(clock):
    feed = Fed(("c1", "idle"))
    loop, _ = fed(feed, Slurm(), clock)
    clock[0] = 800.0
    assert not loop.is_due()
    feed.distrust("gone")
    clock[0] = 829.0
    assert not loop.is_due()
    clock[0] = 831.0
    assert loop.is_due()


def test_pod_that_would_be_refused_again_and_again_has_slurm_asked_once_a_minute(clock):
    slurm, feed = Slurm(), Fed(("c1", "idle"))
    _, config = fed(feed, slurm, clock)
    for second in range(1, 121):
        clock[0] = 100.0 + second
        asyncio.run(config.renew())
    assert slurm.asked == 3


def test_unchanged_node_is_written_seldom(monkeypatch):
    """Each write goes to all who watch nodes, and an idle control plane has nothing else to do."""
    node, written = {"metadata": {}, "spec": {}, "status": {}}, []

    class Api:
        async def patch(self, path, body, kind=None):
            written.append(path)
            node.update(body)

        async def get(self, path):
            return {**node}

    async def main(clock):
        monkeypatch.setattr(node_loop, "time", SimpleNamespace(monotonic=clock))
        loop = NodeLoop(Api(), SimpleNamespace(settings=SETTINGS), HOST, Slurm(), lambda: 1e9)
        task = asyncio.ensure_future(loop.status())
        await asyncio.sleep(3600)
        task.cancel()

    virtual_time.inline(monkeypatch)
    virtual_time.run(main)
    assert 10 <= len([path for path in written if path.endswith("/status")]) <= 13
