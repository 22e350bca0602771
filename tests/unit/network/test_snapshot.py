"""Snapshots from a range and from changes: the same, however one gets there."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.etcd.store import Changes, Entry, Event, Found
from isthmus.model.network import (
    Active,
    Attachment,
    Driver,
    Exposure,
    Heard,
    Job,
    Lease,
    Node,
    Ranges,
    State,
    Transport,
    User,
)
from isthmus.network.state.codec import Guard, encode, key_of
from isthmus.network.state.keys import JobKey, Keys, LeaseKey, RangesKey, StoredError, UserKey
from isthmus.network.state.snapshot import Snapshot, follow, load

KEYS = Keys("test")
BLOCK = IPv4Network("10.64.0.0/24")
NODE = Node("c1", IPv4Address("10.0.0.1"))
USER = User(2001, "alice", 4096, (BLOCK,), {"c1": IPv4Address("10.64.0.1")})
JOB = Job(7, 2001, "a", Driver.PRIVATE, ("c1",), (IPv4Address("10.64.0.2"),))
LEASE = Lease(2001, "login", 5)
ATTACHMENT = Attachment(8, "c1", IPv4Address("10.128.1.2"))
GUARD = Guard(Ranges(IPv4Network("10.64.0.0/10")), 1)
ACTIVE, HEARD = Active("g1"), Heard("g1")
EXPOSURE = Exposure(IPv4Address("198.51.100.10"), Transport.TCP, 443, 2001, "web")
ALL = (NODE, USER, JOB, LEASE, GUARD, ATTACHMENT, ACTIVE, HEARD, EXPOSURE)


def found(*values, revision=9):
    """A range: each value with a revision of its own, from 1 on."""
    entries = [Entry(KEYS.path(key_of(value)), encode(value), number) for number, value in enumerate(values, 1)]
    return Found({entry.key: entry for entry in entries}, revision)


def changes(*values, gone=(), revision=10):
    puts = [Event(KEYS.path(key_of(value)), encode(value), revision) for value in values]
    return Changes(revision, (*puts, *(Event(KEYS.path(key), None, revision) for key in gone)))


def test_nothing_is_an_empty_state():
    assert load(KEYS, found()) == Snapshot(State(revision=9))


def test_range_fills_every_table():
    at = load(KEYS, found(*ALL))
    tables = {"c1": NODE}, {2001: USER}, {7: JOB}, {(2001, "login"): LEASE}, 9, {(8, "c1"): ATTACHMENT}
    assert at.state == State(*tables, "g1", {"g1": HEARD}, {EXPOSURE.door: EXPOSURE})
    assert at.guard == GUARD
    assert [at.revision_of(key_of(value)) for value in ALL] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert at.jobs() == {7: 3}


def test_key_that_is_not_there_has_no_revision():
    assert load(KEYS, found()).revision_of(UserKey(2001)) == 0


@pytest.mark.parametrize("value", ALL, ids=lambda value: type(value).__name__)
def test_put_and_deletion_are_followed(value):
    others = [other for other in ALL if other != value]
    before = load(KEYS, found(*others))
    after = follow(KEYS, before, changes(value))
    assert after.state.revision == after.revision_of(key_of(value)) == 10
    assert load(KEYS, found(*others, value)).state.users == after.state.users
    gone = follow(KEYS, after, changes(gone=[key_of(value)], revision=11))
    assert gone.revision_of(key_of(value)) == 0
    assert (gone.state, gone.guard) == (replace(before.state, revision=11), before.guard)


def test_of_several_changes_of_a_key_the_last_counts():
    newer = Job(7, 2001, "b", Driver.PRIVATE, ("c2",), JOB.addresses)
    first = changes(newer, gone=[JobKey(7)]).events
    at = follow(KEYS, load(KEYS, found(JOB)), Changes(12, (*first, *changes(newer, revision=12).events)))
    assert at.state.jobs == {7: newer}
    assert at.jobs() == {7: 12}


@pytest.mark.parametrize("revision", [8, 9])
def test_what_was_seen_changes_nothing(revision):
    at = load(KEYS, found(*ALL))
    assert follow(KEYS, at, changes(gone=[UserKey(2001)], revision=revision)) is at


def test_progress_moves_the_revision_alone():
    at = load(KEYS, found(*ALL))
    after = follow(KEYS, at, Changes(20))
    assert after.state.revision == 20
    assert (after.state.users, after.revisions) == (at.state.users, at.revisions)


def test_former_snapshot_stays_as_it_was():
    at = load(KEYS, found(*ALL))
    follow(KEYS, at, changes(gone=[UserKey(2001), JobKey(7), LeaseKey(2001, "login"), RangesKey()]))
    assert at == load(KEYS, found(*ALL))


def test_untouched_tables_are_shared():
    at = load(KEYS, found(*ALL))
    after = follow(KEYS, at, changes(NODE))
    assert after.state.users is at.state.users


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("users/2001", "{}"),
        ("users/2001", ""),
        ("users/02001", encode(USER)),
        ("unknown", "{}"),
        ("jobs/7", encode(USER)),
    ],
)
def test_unknown_form_is_refused(key, value):
    event = Event(KEYS.prefix + key, value, 10)
    with pytest.raises(StoredError, match=key):
        follow(KEYS, load(KEYS, found(*ALL)), Changes(10, (event,)))
