"""When Slurm is asked what it offers."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from isthmus.kubelet import node_loop, starting
from isthmus.kubelet.node_loop import NodeLoop
from isthmus.kubelet.starting import NeverError
from tests.support.fake_pod_jobs import OFFER
from tests.support.pods import SETTINGS, container, pod
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

    class Settled:
        settings = SETTINGS

        async def renew(self):
            self.settings = replace(SETTINGS, features=frozenset({"fast"} if is_there else ()), labels=LABELS[is_there])

        async def runtime_class(self, name):
            raise PreparedError(name)

    class Parts:
        config = Settled()
        settings = property(lambda self: self.config.settings)

    wanted = pod(container(), nodeSelector={"feature.slurm/fast": "true"}, runtimeClassName="x")
    with pytest.raises(PreparedError if is_there else NeverError):
        asyncio.run(starting.prepare(Parts(), wanted))
