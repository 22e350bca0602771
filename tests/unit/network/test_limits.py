"""Buckets and accounts by a clock that the test moves."""

import threading

import pytest

from isthmus.network.api import limits
from isthmus.network.api.limits import LOOKUPS_MAX, REMEMBERED_MAX, UNKNOWN_S, Accounts, Buckets

ALICE, SUBORDINATE = 1001, 165536


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Names:
    """A name service that knows Alice, and counts what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, uid):
        self.asked.append(uid)
        if uid != ALICE:
            raise KeyError(uid)


def test_burst_is_free_and_the_rest_waits(clock):
    buckets = Buckets(10, 3, clock)
    assert [buckets.spend(ALICE) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    assert buckets.spend(ALICE + 1) == 0


def test_bucket_fills_again_but_no_further(clock):
    buckets = Buckets(10, 3, clock)
    buckets.spend(ALICE, 3)
    clock.now = 100
    assert [buckets.spend(ALICE) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_long_request_costs_as_much_as_many_short_ones(clock):
    buckets = Buckets(limits.REQUESTS_PER_S, limits.REQUESTS_AT_ONCE, clock)
    assert buckets.spend(ALICE, limits.price(256 * 1024)) > 2
    assert limits.price(100) < 1.25


def test_take_goes_into_no_debt(clock):
    buckets = Buckets(1, 2, clock)
    assert [buckets.take(ALICE) for _ in range(4)] == pytest.approx([0, 0, 1, 1])
    clock.now = 1
    assert buckets.take(ALICE) == 0


def test_buckets_that_are_full_are_forgotten(clock):
    buckets = Buckets(10, 3, clock)
    buckets.spend(ALICE, 30)
    for uid in range(REMEMBERED_MAX, 3 * REMEMBERED_MAX):
        clock.now += 0.001
        buckets.spend(uid)
    assert len(buckets._levels) <= REMEMBERED_MAX
    clock.now = 0.001 * 2 * REMEMBERED_MAX
    assert buckets.take(ALICE) == 0


def test_account_is_looked_up_once(clock):
    names = Names()
    accounts = Accounts(names, clock)
    assert [accounts.may_be(ALICE), accounts.has(ALICE), accounts.has(ALICE), accounts.may_be(ALICE)] == [True] * 4
    assert names.asked == [ALICE]


def test_subordinate_uid_is_none_and_not_asked_for_at_once_again(clock):
    accounts = Accounts(Names(), clock)
    assert accounts.may_be(SUBORDINATE)
    assert not accounts.has(SUBORDINATE)
    assert not accounts.may_be(SUBORDINATE)
    clock.now = UNKNOWN_S
    assert accounts.may_be(SUBORDINATE)


def test_unknown_uids_push_no_account_out(clock):
    accounts = Accounts(Names(), clock)
    accounts.has(ALICE)
    for uid in range(SUBORDINATE, SUBORDINATE + 2 * REMEMBERED_MAX):
        accounts.has(uid)
    assert accounts.may_be(ALICE)
    assert len(accounts._unknown) == REMEMBERED_MAX


def test_slow_name_service_holds_few_threads_and_no_known_account(clock):
    let = threading.Event()
    names = Names()
    accounts = Accounts(lambda uid: names(uid) if uid == ALICE else let.wait(30), clock)
    accounts.has(ALICE)
    asking = [threading.Thread(target=accounts.has, args=(SUBORDINATE + each,)) for each in range(LOOKUPS_MAX)]
    for thread in asking:
        thread.start()
    try:
        while accounts.may_be(SUBORDINATE + LOOKUPS_MAX):
            pass
        assert not accounts.has(SUBORDINATE + LOOKUPS_MAX)
        assert accounts.has(ALICE)
    finally:
        let.set()
        for thread in asking:
            thread.join()
    assert accounts.may_be(SUBORDINATE + LOOKUPS_MAX)
