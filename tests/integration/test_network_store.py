"""Addresses taken and given back on a real etcd, also by many at once."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.etcd.store import Etcd
from isthmus.model.network import Node, Ranges
from isthmus.network.state.ipam import RangeFullError, Request
from isthmus.network.state.keys import JobKey, Keys, UserKey
from isthmus.network.state.store import ContendedError, RangesDifferError, Store
from tests.support.wait import wait

RANGES = Ranges(IPv4Network("10.64.0.0/16"))
USERS = {2001: "alice", 2002: "bob", 2003: "carol"}
NODES = tuple(f"c{number}" for number in range(1, 9))


def request(job=1, uid=2001, nodes=NODES[:2], **changes):
    return Request(job, uid, USERS[uid], f"job{job}", tuple(nodes), **changes)


def given(state):
    """All addresses of a state, one by one: pods', legs' and reservations'."""
    pods = [address for job in state.jobs.values() for address in job.addresses]
    return pods + [
        address for user in state.users.values() for address in (*user.legs.values(), *user.reserved.values())
    ]


def ended(at, *jobs):
    return {job: at.revision_of(JobKey(job)) for job in jobs}


def test_job_takes_addresses_and_legs_in_one_revision(store):
    taken = store.take(request())
    at = store.load()
    assert at.state.jobs == {1: taken.job}
    assert at.state.users == {2001: taken.user}
    assert set(taken.user.legs) == set(NODES[:2])
    assert set(at.revisions.values()) == {at.state.revision}
    assert at.guard.ranges == RANGES


def test_job_that_asks_again_gets_the_same_and_writes_nothing(store):
    first = store.take(request())
    before = store.load()
    assert store.take(request()).job == first.job
    assert store.load() == before


def test_old_snapshot_loses_and_nobody_is_given_twice(store):
    old = store.load()
    first, second = (store.take(request(job), old) for job in (1, 2))
    third = store.take(request(3, uid=2002), old)
    state = store.load().state
    assert state.jobs == {taken.job.id: taken.job for taken in (first, second, third)}
    assert len(set(given(state))) == len(given(state))
    assert len({user.vni for user in state.users.values()}) == 2


def test_old_snapshot_does_not_bring_back_an_ended_job(store):
    store.take(request())
    old = store.load()
    assert store.release(ended(old, 1)) == {1}
    taken = store.take(request(), old)
    assert store.load().state.jobs == {1: taken.job}


def test_ended_job_leaves_nothing_but_the_user(store):
    store.take(request())
    assert store.release(ended(store.load(), 1)) == {1}
    state = store.load().state
    assert (state.jobs, state.users[2001].legs) == ({}, {})
    assert store.release({1: 1}) == frozenset()


def test_another_stay_of_the_job_is_not_released(store):
    store.take(request(nodes=NODES[:2]))
    before = ended(store.load(), 1)
    taken = store.take(request(nodes=NODES[2:4]))
    assert store.release(before) == frozenset()
    assert store.load().state.jobs == {1: taken.job}


def test_other_jobs_and_leases_keep_their_legs(store):
    store.take(request(1, nodes=["c1", "c2"]))
    store.take(request(2, nodes=["c2", "c3"]))
    leg = store.lease(2001, "alice", "login", 5)
    store.release(ended(store.load(), 1))
    assert set(store.load().state.users[2001].legs) == {"c2", "c3", "login"}
    assert store.lease(2001, "alice", "login", 6) == leg
    assert [store.drop_lease(2001, "login"), store.drop_lease(2001, "login")] == [True, False]
    assert set(store.load().state.users[2001].legs) == {"c2", "c3"}


def test_job_id_of_another_user_takes_the_former_ones_legs(store):
    store.take(request(1, uid=2001))
    taken = store.take(request(1, uid=2002))
    state = store.load().state
    assert state.jobs == {1: taken.job}
    assert state.users[2001].legs == {}


def test_many_ended_jobs_are_released(store):
    for job in range(1, 121):
        store.take(request(job, nodes=["c1"]))
    at = store.load()
    assert store.release(at.jobs(), at) == set(range(1, 121))
    assert store.load().state.jobs == {}


def test_reservation_is_kept_until_it_is_given_back(store):
    address = store.reserve(2001, "alice", "db")
    assert store.reserve(2001, "alice", "db") == address
    assert store.take(request(reservation="db")).job.addresses[0] == address
    assert [store.unreserve(2001, "db"), store.unreserve(2001, "db")] == [True, False]


def test_node_is_announced_once(store):
    node = Node("c1", IPv4Address("10.0.0.1"))
    assert [store.announce(node), store.announce(node), store.announce(replace(node, mtu=9000))] == [True, False, True]
    assert store.load().state.nodes == {"c1": replace(node, mtu=9000)}
    assert [store.forget("c1"), store.forget("c1")] == [True, False]


def test_full_range_is_reported_and_nothing_is_written(etcd):
    store = Store(etcd, Keys("test"), Ranges(IPv4Network("10.64.0.0/24")))
    store.take(request(uid=2001))
    before = store.load()
    with pytest.raises(RangeFullError):
        store.take(request(2, uid=2002))
    assert store.load() == before


def test_other_ranges_are_refused(etcd, store):
    """Two clusters with one id, or a range that was changed below living jobs."""
    store.take(request())
    other = Store(etcd, Keys("test"), replace(RANGES, pods=IPv4Network("10.96.0.0/16")))
    for refused in (other.load, lambda: other.take(request(2), store.load())):
        with pytest.raises(RangesDifferError, match=r"10\.64\.0\.0/16.*10\.96\.0\.0/16"):
            refused()


def test_losing_again_and_again_ends(etcd, store, monkeypatch):
    impatient = Store(etcd, Keys("test"), RANGES, patience_s=0.2)
    old = store.load()
    store.take(request())
    monkeypatch.setattr(impatient, "load", lambda: old)
    with pytest.raises(ContendedError):
        impatient.take(request(2))


def test_feed_shows_each_change(store):
    feed = store.feed(store.load())
    seen = []
    reader = threading.Thread(target=lambda: seen.extend(at.state.jobs.keys() for at in feed), daemon=True)
    reader.start()
    store.take(request())
    wait(lambda: [set(jobs) for jobs in seen], lambda got: {1} in got, interval_s=0.05)
    store.release(ended(store.load(), 1))
    wait(lambda: set(seen[-1]), lambda jobs: not jobs, interval_s=0.05)
    feed.close()
    reader.join(60)
    assert not reader.is_alive()


def test_lost_race_is_known_from_the_feed(etcd, monkeypatch):
    store = Store(etcd, Keys("test"), Ranges(IPv4Network("10.64.0.0/16")), feed_s=60)
    old = store.load()
    feed = store.feed(old)
    threading.Thread(target=list, args=[feed], daemon=True).start()
    wait(lambda: feed.connected, interval_s=0.01)
    store.take(request(1), old)
    with monkeypatch.context() as patch:
        patch.delattr(Store, "load")
        taken = store.take(request(2), old)
    feed.close()
    assert set(store.load().state.jobs) == {1, 2}
    assert not set(taken.job.addresses) & set(store.load().state.jobs[1].addresses)


def test_closed_feed_is_not_waited_for(store):
    old = store.load()
    feed = store.feed(old)
    feed.close()
    store.take(request(1), old)
    store.take(request(2), old)
    assert set(store.load().state.jobs) == {1, 2}


def test_feed_that_fell_behind_reads_again(cluster, store):
    at, said = store.load(), []
    jobs = {job: store.take(request(job)).job for job in (1, 2)}
    root = Etcd(cluster.access("root"))
    root.call("kv/compaction", {"revision": str(store.load().state.revision), "physical": True})
    feed = store.feed(at, said.append)
    assert next(iter(feed)).state.jobs == jobs
    assert "read again" in said[0]
    feed.close()


def test_changes_of_one_user_in_one_daemon_do_not_race(cluster, monkeypatch):
    """Sixty-four jobs that start at once, while etcd is slow: each decides on what the one before it left."""
    etcd, asked = Etcd(cluster.access(timeout_s=60)), []
    store = Store(etcd, Keys("test"), RANGES, line_s=120)

    def slow(unchanged, steps, answer=etcd.transact):
        asked.append(unchanged)
        time.sleep(0.02)
        return answer(unchanged, steps)

    monkeypatch.setattr(etcd, "transact", slow)
    old = store.load()
    count = 64
    with monkeypatch.context() as during, ThreadPoolExecutor(count) as pool:
        during.setattr(store, "load", lambda: pytest.fail("everything was read again"))
        taking = [pool.submit(store.take, request(job), old) for job in range(1, count + 1)]
        jobs = {done.result().job.id for done in taking}
    assert set(store.load().state.jobs) == jobs == set(range(1, count + 1))
    assert len(asked) == count


def test_turn_that_does_not_end_is_not_waited_for_forever(etcd):
    store = Store(etcd, Keys("test"), RANGES, patience_s=0.2, line_s=0.2)
    with store._turns.of(UserKey(2001), 1):
        assert store.take(request(1)).job.id == 1


def test_of_many_at_once_nobody_is_given_twice(cluster, etcd):
    """20 threads, each with its own connection, take and release jobs of three users."""

    def churn(seed):
        dice = random.Random(seed)  # noqa: S311
        mine = Store(Etcd(cluster.access(timeout_s=60)), Keys("test"), RANGES, patience_s=120)
        for round_ in range(5):
            job, uid = 100 * seed + round_ + 1, dice.choice(list(USERS))
            nodes = dice.sample(NODES, dice.randint(1, 4))
            taken = mine.take(request(job, uid=uid, nodes=nodes)).job
            assert taken.nodes == tuple(nodes)
            if dice.random() < 0.7:
                assert mine.release(ended(mine.load(), job)) == {job}

    feed = Store(etcd, Keys("test"), RANGES).feed(Store(etcd, Keys("test"), RANGES).load())
    doubles, last = [], []
    threading.Thread(target=lambda: [watched(at, doubles, last) for at in feed], daemon=True).start()
    with ThreadPoolExecutor(20) as pool:
        for done in [pool.submit(churn, seed) for seed in range(20)]:
            done.result()
    at = Store(etcd, Keys("test"), RANGES).load()
    wait(lambda: last and last[-1].state.revision >= at.state.revision)
    feed.close()
    assert not doubles
    assert replace(last[-1], state=replace(last[-1].state, revision=0)) == replace(
        at, state=replace(at.state, revision=0)
    )


def watched(at, doubles, last):
    """Look at every revision: no address twice, no block of two users, no VNI of two users."""
    addresses = given(at.state)
    blocks = [block for user in at.state.users.values() for block in user.blocks]
    overlapping = [one for one in blocks if sum(one.overlaps(other) for other in blocks) > 1]
    vnis = [user.vni for user in at.state.users.values()]
    if len(set(addresses)) != len(addresses) or overlapping or len(set(vnis)) != len(vnis):
        doubles.append(at)
    last.append(at)
