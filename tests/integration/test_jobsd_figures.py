"""Figures that kubelets report to jobsd, with a real munged and TLS: whose they are, and what a flood of them does."""

import asyncio
import os

import pytest

from isthmus.clients.job_feed import FeedError
from isthmus.jobs import users
from isthmus.model.job_feed import Demand, Figures, Phase, Stage, Starts
from tests.support.servers.jobsd import ALICE, BOB, TIMEOUT_S, Site, kept_keys
from tests.support.wait import wait

SOME = Figures({Phase.RUNNING: 3}, {Stage.QUEUE: Starts(4, 2500)})


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    with kept_keys(tmp_path_factory.mktemp("jobsd")) as kept:
        yield kept


@pytest.fixture
def site(keys, monkeypatch):
    monkeypatch.setenv("PATH", f"{keys.bin}:{os.environ['PATH']}")
    return Site(keys)


async def until(said, limit_s=10.0):
    async with asyncio.timeout(limit_s):
        while not said():
            await asyncio.sleep(0.05)


def test_figures_are_of_who_the_credential_says(site):
    async def use():
        alice, bob = await site.connected(ALICE), await site.connected(BOB)
        alice.write(Demand(60.0, 0, SOME))
        bob._writer.write(
            b'{"pause_ms": 60000, "ask": 0, "user": "alice", "uid": 1001,'
            b' "figures": {"user": "alice", "pods": {"Running": 9}, "starts": {}}}\n'
        )
        await until(lambda: len(site.hub.figures) == 2)
        found = site.hub.figures
        alice.close()
        await until(lambda: len(site.hub.figures) == 1)
        return found

    assert site.run(use) == {ALICE: SOME, BOB: Figures({Phase.RUNNING: 9})}


def test_figures_that_are_none_end_their_own_connection(site):
    async def use():
        alice, bob = await site.connected(ALICE), await site.connected(BOB)
        await site.reported(alice)
        alice.write(Demand(60.0, 0, SOME))
        await site.reported(bob)
        bob._writer.write(b'{"pause_ms": 0, "ask": 0, "figures": {"pods": {"Running": -1}, "starts": {}}}\n')
        with pytest.raises(FeedError, match="pods are counts"):
            while True:
                await bob.read(TIMEOUT_S)
        await until(lambda: len(site.hub.figures) == 1)
        return site.hub.figures, site.hub.size

    assert site.run(use) == ({ALICE: SOME}, (1, 1))


def test_flood_of_figures_is_read_slowly_and_hides_nobodys(site, tmp_path):
    """Bob sends what he can, on as many connections as he gets; alice's report comes, and the file stays small."""
    path = tmp_path / "users.prom"

    async def use():
        writing = asyncio.create_task(users.write(site.hub, path, str))
        bobs = [await site.connected(BOB) for _ in range(4)]
        alice = await site.connected(ALICE)
        await site.reported(alice)
        for number in range(5000):
            bobs[number % 4].write(Demand(300.0, 0, Figures({Phase.RUNNING: number % 1000}, SOME.starts)))
        before = site.slurm.asked["squeue"]
        alice.write(Demand(300.0, 0, SOME))
        await until(lambda: ALICE in site.hub.figures, 3)
        site.slurm.set(ALICE, "9", "PENDING", "next")
        alice.write(Demand(300.0, 1))
        assert "9" in (await site.reported(alice)).rows
        asked = site.slurm.asked["squeue"] - before
        writing.cancel()
        return asked, await asyncio.to_thread(size, site.hub, path)

    asked, size_bytes = site.run(use)
    assert asked <= 4
    assert size_bytes < 4096


def size(hub, path):
    users._written(hub.figures, path, str)
    wait(path.exists, bool, timeout_s=5)
    return path.stat().st_size
