"""jobsd's port with a real munged and TLS: who gets what, and what strangers cannot do to others."""

import asyncio
import contextlib
import os
import socket
import subprocess

import pytest

from isthmus.clients import job_feed as client
from isthmus.clients.job_feed import FeedError, Source
from isthmus.jobs.doors import Bounds
from isthmus.model import job_feed
from isthmus.model.job_feed import Demand
from tests.support.files import certificates
from tests.support.servers.jobsd import ALICE, BOB, TIMEOUT_S, Site, kept_keys

NOBODYS = 231072


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    with kept_keys(tmp_path_factory.mktemp("jobsd")) as kept:
        yield kept


@pytest.fixture
def site(keys, monkeypatch):
    monkeypatch.setenv("PATH", f"{keys.bin}:{os.environ['PATH']}")
    return Site(keys)


def test_each_kubelet_is_sent_its_own_users_jobs(site):
    async def use():
        connections = [await site.connected(uid) for uid in (ALICE, BOB)]
        return [(await site.reported(each)).rows for each in connections]

    alice, bob = site.run(use)
    assert [row[-1] for row in alice.values()] == ["alice's pod"]
    assert [row[-1] for row in bob.values()] == ["bob's pod"]


def test_change_comes_by_itself_within_a_second(site):
    async def use():
        connection = await site.connected(ALICE)
        await site.reported(connection)
        connection.write(Demand(1.0, 0))
        site.slurm.set(ALICE, "3", "PENDING", "next")
        began_s = asyncio.get_running_loop().time()
        changed = await site.reported(connection)
        return set(changed.rows), asyncio.get_running_loop().time() - began_s

    rows, took_s = site.run(use)
    assert rows == {"3"}
    assert took_s < 2


def test_credential_of_alice_that_bob_has_opens_nothing(site):
    """Seen on another connection, made for another program, used twice, or made for another reader."""
    old = site.keys.munge.credential("isthmus-jobsd 1 0123456789abcdef", os.getuid(), ALICE)
    slurms = site.keys.munge.credential("", None, ALICE)

    async def use():
        kept = []

        def good(hello):
            kept.append(site.keys.munge.credential(hello.payload, hello.uid, ALICE))
            return kept[0]

        said = {"good": await site.answer_to(good), "twice": await site.answer_to(lambda _: kept[0])}
        said |= {"old": await site.answer_to(lambda _: old), "Slurm's": await site.answer_to(lambda _: slurms)}
        return said

    said = site.run(use)
    assert "alice's pod" in said.pop("good")
    assert [("error" in words, "alice's pod" in words) for words in said.values()] == [(True, False)] * 3
    assert "Replayed" in said["twice"]


def test_credential_for_another_reader_cannot_be_opened(site):
    """Bob, who lures alice's kubelet to a port of his, could not read what it says."""
    credential = site.keys.munge.credential("x", 12345, ALICE)
    command = ["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/unmunge", f"--socket={site.keys.munge.socket}"]
    done = munge_run(command, credential)
    assert done.returncode != 0
    assert "Unauthorized" in done.stderr


def munge_run(command, text):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_uid_that_is_no_account_is_refused(site):
    async def use():
        return await site.answer_to(lambda hello: site.keys.munge.credential(hello.payload, hello.uid, NOBODYS))

    assert "no account" in site.run(use)


@pytest.mark.parametrize("line", [b"", b"{}\n", b"\xff\n", b'{"credential": 7}\n', b"x" * 100_000 + b"\n"])
def test_words_that_are_none_end_their_own_connection_alone(site, line):
    site.bounds = Bounds(hello_s=1)

    async def use():
        alice = await site.connected(ALICE)
        await site.reported(alice)
        async with site.stranger() as (reader, writer, _):
            writer.write(line)
            with contextlib.suppress(ConnectionError):
                await reader.read()
        site.slurm.set(ALICE, "3", "PENDING", "next")
        alice.write(Demand(1.0, 1))
        return set((await site.reported(alice)).rows)

    assert site.run(use) == {"3"}


def test_words_of_a_user_that_are_none_end_his_own_connection(site):
    async def use():
        connections = [await site.connected(uid) for uid in (ALICE, BOB)]
        for each in connections:
            await site.reported(each)
        connections[1]._writer.write(b"[[[[\n")
        with pytest.raises(FeedError):
            while True:
                await connections[1].read(TIMEOUT_S)
        return site.hub.size

    assert site.run(use) == (1, 1)


def test_flood_of_strangers_ends_nobody_who_is_known(site):
    """Of one address hundreds that say nothing; another address gets in meanwhile, and who was there stays."""

    async def use():
        alice = await site.connected(ALICE)
        await site.reported(alice)
        at = ("127.0.0.1", site.port)
        flood = await asyncio.to_thread(lambda: [socket.create_connection(at) for _ in range(300)])
        async with site.stranger(local="127.0.0.2") as (reader, writer, hello):
            text = site.keys.munge.credential(hello.payload, hello.uid, BOB)
            writer.write(job_feed.write_credential(text))
            bob = (await reader.readline()).decode()
        site.slurm.set(ALICE, "3", "PENDING", "next")
        alice.write(Demand(1.0, 1))
        rows = set((await site.reported(alice)).rows)
        for each in flood:
            each.close()
        return bob, rows, site.hub.counts["turned_away"]

    bob, rows, turned_away = site.run(use)
    assert "bob's pod" in bob
    assert rows == {"3"}
    assert turned_away >= 200


def test_stranger_without_tls_goes(site):
    site.bounds = Bounds(hello_s=0.5)

    async def use():
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b'{"credential": "x"}\n')
        return await reader.read()

    assert b"nonce" not in site.run(use)


def test_flood_of_requests_is_read_slowly_and_asks_no_more(site):
    async def use():
        bob, alice = await site.connected(BOB), await site.connected(ALICE)
        await site.reported(alice)
        for ask in range(1, 3000):
            bob.write(Demand(0.0, ask))
        before = site.slurm.asked["squeue"]
        began_s = asyncio.get_running_loop().time()
        for number in range(10, 13):
            site.slurm.set(ALICE, str(number), "PENDING", "next")
            assert str(number) in (await site.reported(alice)).rows
        (his,) = [one.demand.ask for one in site.hub._subscribers if one.uid == BOB]
        return site.slurm.asked["squeue"] - before, his, asyncio.get_running_loop().time() - began_s

    asked, his, took_s = site.run(use)
    assert asked <= took_s + 2
    assert his <= site.bounds.lines + site.bounds.lines_rate * (took_s + 2)


def test_slow_reader_is_dropped_and_others_are_served(site):
    site.bounds = Bounds(send_s=1)
    pods = [f"{number:036}" for number in range(8000)]

    async def use():
        alice, bob = await site.connected(ALICE), await site.connected(BOB)
        await site.reported(alice)
        bob._writer.transport.pause_reading()
        late = []
        for turn in range(40):
            for number, comment in enumerate(pods):
                site.slurm.set(BOB, str(number), f"STATE{turn}", comment)
            site.slurm.set(ALICE, "1", "RUNNING", f"turn {turn}")
            began_s = asyncio.get_running_loop().time()
            alice.write(Demand(1.0, turn + 1))
            await site.reported(alice)
            late.append(asyncio.get_running_loop().time() - began_s)
            if site.hub.counts["slow"]:
                return late, site.hub.size
        return late, None

    late, size = site.run(use)
    assert size == (1, 1)
    assert max(late) < 5


@pytest.mark.parametrize("name", ["another address", "another authority"])
def test_kubelet_sends_no_credential_to_another_host(site, tmp_path, name):
    certificates.write(tmp_path / "other", address="127.0.0.9")
    made = []

    async def use():
        ca = {"another address": site.keys.tls, "another authority": tmp_path / "other"}[name] / "ca.crt"
        address = "127.0.0.1" if name == "another authority" else "localhost.localdomain"
        with contextlib.suppress(FeedError):
            await client.connect(Source(address, site.port, ca), lambda *words: made.append(words) or "")
            return True
        return False

    assert site.run(use) is False
    assert made == []
