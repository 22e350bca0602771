"""What is given back, what a long mixture of requests leaves, and the sizes that must fit."""

import random
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Lease, Ranges, State, User
from isthmus.network.node.nodelist import unfold
from isthmus.network.state import ipam

RANGES = Ranges(IPv4Network("10.64.0.0/16"), 28)
BLOCKS = tuple(map(IPv4Network, ("10.64.0.0/28", "10.64.0.16/28", "10.64.0.32/28")))


def at(number):
    return IPv4Address("10.64.0.0") + number


USER = User(1, "a", 4096, BLOCKS, {"c1": at(1), "c2": at(2), "login": at(3)}, {}, at(20))
JOB = Job(1, 1, "a", Driver.PRIVATE, ("c1", "c2"), (at(4), at(5)))
OTHER = Job(2, 1, "b", Driver.PRIVATE, ("c2",), (at(6),))
FLANNEL = Job(3, 1, "f", Driver.FLANNEL, ("c1",), ())
STRANGER = Job(4, 2, "s", Driver.PRIVATE, ("c1",), (at(100),))


def known(*jobs, leases=(), user=USER):
    return State(
        users={1: user},
        jobs={job.id: job for job in jobs},
        leases={(uid, node): Lease(uid, node, 0) for uid, node in leases},
    )


@pytest.mark.parametrize(
    ("jobs", "leases", "ended", "dropped", "legs"),
    [
        ((JOB,), (), (), (), "c1 c2"),
        ((JOB, OTHER), (), (1,), (), "c2"),
        ((JOB, OTHER), (), (1, 2), (), ""),
        ((JOB,), ((1, "login"),), (1,), (), "login"),
        ((JOB,), ((1, "login"), (1, "c1")), (), ("login", "c1"), "c1 c2"),
        ((FLANNEL, STRANGER), ((2, "login"),), (), (), ""),
        ((JOB,), (), (99,), (), "c1 c2"),
    ],
)
def test_legs_that_nothing_needs_go(jobs, leases, ended, dropped, legs):
    left = ipam.release(known(*jobs, leases=leases), 1, ended, dropped)
    assert sorted(left.legs) == legs.split()
    assert left.legs.items() <= USER.legs.items()


def test_idle_user_keeps_his_first_block():
    left = ipam.release(known(JOB), 1, [1])
    assert (left.blocks, left.cursor, left.vni) == (BLOCKS[:1], None, 4096)


def test_idle_user_keeps_blocks_with_reservations():
    user = replace(USER, reserved={"web": at(35)}, cursor=at(33))
    left = ipam.release(known(JOB, user=user), 1, [1])
    assert (left.blocks, left.cursor, left.reserved) == ((BLOCKS[0], BLOCKS[2]), at(33), user.reserved)


def test_busy_user_keeps_all_blocks():
    assert ipam.release(known(JOB, OTHER), 1, [1]).blocks == BLOCKS
    assert ipam.release(known(leases=[(1, "login")]), 1).blocks == BLOCKS


def test_unknown_user_has_nothing_to_release():
    assert ipam.release(State(), 1, [1]) is None


def assert_sound(state):
    """Every address in use is its user's alone, in one of his blocks, and each node of a job has a leg."""
    blocks = [block for user in state.users.values() for block in user.blocks]
    assert not any(a.overlaps(b) for a in blocks for b in blocks if a is not b)
    assert len({user.vni for user in state.users.values()}) == len(state.users)
    for uid, user in state.users.items():
        jobs = [job for job in state.jobs.values() if job.uid == uid]
        pods = [address for job in jobs for address in job.addresses[1 if job.reservation in user.reserved else 0 :]]
        used = [*pods, *user.legs.values(), *user.reserved.values()]
        assert len(set(used)) == len(used)
        edges = {edge for block in user.blocks for edge in (block.network_address, block.broadcast_address)}
        assert all(any(each in block for block in user.blocks) and each not in edges for each in used)
        needed = {node for job in jobs for node in job.nodes} | {node for owner, node in state.leases if owner == uid}
        assert set(user.legs) == needed


def random_step(state, chance):
    """Return the state after one random thing that can happen."""
    uid, nodes = chance.randint(1, 3), tuple(chance.sample(unfold("c[1-9]"), chance.randint(1, 9)))
    users, jobs, leases = dict(state.users), dict(state.jobs), dict(state.leases)
    kind = chance.choice(["take", "take", "end", "end", "lease", "drop", "reserve"])
    if kind == "take":
        job = chance.randint(1, 12) * 3 + uid
        taken = ipam.take(state, RANGES, ipam.Request(job, uid, f"u{uid}", "x", nodes))
        users[uid], jobs[job] = taken.user, taken.job
    elif kind == "lease":
        users[uid] = ipam.lease(state, RANGES, uid, f"u{uid}", nodes[0]).user
        leases[uid, nodes[0]] = Lease(uid, nodes[0], 0)
    elif kind == "reserve":
        users[uid] = ipam.reserve(state, RANGES, uid, f"u{uid}", f"s{chance.randint(1, 5)}").user
    elif uid in users:
        ended = [job for job, each in jobs.items() if each.uid == uid and chance.random() < 0.5 and kind == "end"]
        gone = [node for owner, node in leases if owner == uid and kind == "drop"]
        users[uid] = ipam.release(state, uid, ended, gone)
        jobs = {job: each for job, each in jobs.items() if job not in ended}
        leases = {key: each for key, each in leases.items() if key not in {(uid, node) for node in gone}}
    return State(users=users, jobs=jobs, leases=leases)


def test_random_requests_never_give_an_address_twice():
    chance = random.Random(5)  # noqa: S311 -- the same each time
    state = State()
    for _ in range(1500):
        state = random_step(state, chance)
        assert_sound(state)


def test_large_job_fits_one_block_among_a_thousand_users():
    ranges = Ranges(IPv4Network("10.64.0.0/12"))
    users = {
        uid: User(uid, f"u{uid}", 4096 + uid, (IPv4Network((int(ranges.pods.network_address) + 512 * uid, 24)),))
        for uid in range(1000)
    }
    taken = ipam.take(State(users=users), ranges, ipam.Request(1, 5000, "big", "x", unfold("c[1-4000]")))
    assert [block.prefixlen for block in taken.user.blocks] == [19]
    assert not any(taken.user.blocks[0].overlaps(block) for user in users.values() for block in user.blocks)
    assert len({*taken.job.addresses, *taken.user.legs.values()}) == 8000
