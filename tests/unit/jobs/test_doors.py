"""Who is let in before it is known who it is."""

import pytest

from isthmus.jobs.doors import Bounds, Bucket, Doors, Visitor

BOUNDS = Bounds(connections=10, strangers=4, strangers_each=2, burst=5, rate=1, addresses=3)


@pytest.fixture
def now_s():
    return [0.0]


@pytest.fixture
def doors(now_s):
    return Doors(BOUNDS, lambda: now_s[0])


def visitor(address, ended):
    made = Visitor(address, lambda: None)
    made.end = lambda: ended.append(made)
    return made


def test_stranger_who_holds_a_place_goes_for_the_next_one(doors):
    ended = []
    idle, other, third, late = (visitor(address, ended) for address in ("a", "b", "a", "a"))
    assert all(map(doors.enter, (idle, other, third, late)))
    assert ended == [idle]


def test_places_of_all_addresses_are_bounded(doors):
    ended = []
    first, *rest = (visitor(address, ended) for address in "abcde")
    assert all(map(doors.enter, (first, *rest)))
    assert ended == [first]


def test_who_is_known_stays(doors):
    ended = []
    known = visitor("a", ended)
    doors.enter(known)
    doors.known(known)
    for each in range(4):
        doors.enter(visitor("a", ended))
        assert known not in ended, each


def test_address_that_comes_too_often_waits(doors, now_s):
    entered = [doors.enter(visitor("a", [])) for _ in range(7)]
    now_s[0] = 2.5
    entered += [doors.enter(visitor("a", [])) for _ in range(3)]
    assert entered == [True] * 5 + [False] * 2 + [True] * 2 + [False]
    assert doors.enter(visitor("b", []))


def test_full_house_keeps_room_for_strangers_only(doors, now_s):
    for each in range(7):
        now_s[0] += 10
        one = visitor("a", [])
        assert doors.enter(one), each
        doors.known(one)
    now_s[0] += 10
    assert not doors.enter(visitor("b", []))
    doors.leave(one)
    assert doors.enter(visitor("b", []))


def test_bucket_says_how_long_to_wait(now_s):
    bucket = Bucket(2, 4, lambda: now_s[0])
    assert [bucket.take(), bucket.take(), bucket.take()] == [0, 0, 0.25]
    now_s[0] = 0.25
    assert bucket.take() == 0
