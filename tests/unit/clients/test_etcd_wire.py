"""What is sent to etcd's gateway and how its answers are read."""

from base64 import b64decode

import pytest

from isthmus.clients.etcd import wire
from isthmus.clients.etcd.gateway import (
    CompactedError,
    DeniedError,
    EtcdError,
    TokenError,
    UnavailableError,
    named,
    refusal,
)

HEADER = {"header": {"revision": "7"}}
ENTRY = {"key": "YQ==", "value": "Yg==", "mod_revision": "5"}


@pytest.mark.parametrize(
    ("prefix", "key", "end"),
    [("a/", b"a/", b"a0"), ("é", b"\xc3\xa9", b"\xc3\xaa"), ("", b"\0", b"\0")],
)
def test_prefix_ends_before_the_next_name(prefix, key, end):
    found = wire.prefix_range(prefix)
    assert (b64decode(found["key"]), b64decode(found["range_end"])) == (key, end)


def test_empty_range_has_no_entries():
    assert wire.found(HEADER) == wire.Found({}, 7)


def test_entry_without_a_value_is_empty():
    answer = {**HEADER, "kvs": [{"key": "YQ==", "mod_revision": "5"}]}
    assert wire.found(answer).entries == {"a": wire.Entry("a", "", 5)}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"succeeded": True}, wire.Outcome(True, 7)),
        ({}, wire.Outcome(False, 7)),
        (
            {"responses": [{"response_range": {"kvs": [ENTRY]}}, {"response_range": {}}]},
            wire.Outcome(False, 7, {"a": wire.Entry("a", "b", 5)}),
        ),
    ],
)
def test_outcome_reports_who_won(answer, outcome):
    assert wire.outcome({**HEADER, **answer}) == outcome


def test_transaction_compares_looks_up_and_does():
    sent = wire.transaction({"a": 5}, [wire.Put("a", "b"), wire.Delete("c")])
    assert sent["compare"] == [{"key": "YQ==", "target": "MOD", "result": "EQUAL", "mod_revision": "5"}]
    assert sent["success"] == [
        {"request_put": {"key": "YQ==", "value": "Yg=="}},
        {"request_delete_range": {"key": "Yw=="}},
    ]
    assert sent["failure"] == [{"request_range": {"key": "YQ=="}}]


def test_events_are_puts_and_deletions():
    result = {"events": [{"kv": ENTRY}, {"type": "DELETE", "kv": {"key": "YQ==", "mod_revision": "6"}}]}
    assert wire.events(result) == (wire.Event("a", "b", 5), wire.Event("a", None, 6))


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (16, "etcdserver: invalid auth token", TokenError),
        (3, "etcdserver: revision of auth store is old", TokenError),
        (3, "etcdserver: authentication failed, invalid user ID or password", DeniedError),
        (7, "etcdserver: permission denied", DeniedError),
        (11, "etcdserver: mvcc: required revision has been compacted", CompactedError),
        (14, "etcdserver: leader changed", UnavailableError),
        (8, "etcdserver: mvcc: database space exceeded", EtcdError),
    ],
)
def test_error_is_named(code, message, kind):
    assert type(named(code, message)) is kind


@pytest.mark.parametrize(("status", "kind"), [(400, EtcdError), (502, UnavailableError), (302, UnavailableError)])
@pytest.mark.parametrize("text", ["<html>", "", "[]", '{"code": 3}'])
def test_refusal_in_other_words_is_reported_with_its_status(status, kind, text):
    error = refusal(text, status)
    assert type(error) is kind
    assert str(error).startswith(f"status {status}: ")
