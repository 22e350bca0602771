"""Encoding of requests and responses of etcd's JSON gateway; no I/O.

Keys and values are base64, numbers of 64 bits are text, and whatever is zero or false is left out (protobuf's
JSON mapping, and etcd's rpc.proto).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key that is there; `revision` is the one that changed it last."""

    key: str
    value: str
    revision: int


@dataclass(frozen=True, slots=True)
class Found:
    """The entries of a range at one revision of the whole store, by key."""

    entries: Mapping[str, Entry]
    revision: int


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key; with a lease (its id) it is removed when the lease ends."""

    key: str
    value: str
    lease: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key, or all that begin with it; what is gone is no error."""

    key: str
    below: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a transaction.

    Attributes:
        succeeded: whether all compared keys were as expected, and so everything was done.
        revision: of the store, afterwards.
        found: the compared keys that are there, when it did not succeed.
    """

    succeeded: bool
    revision: int
    found: Mapping[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A key that was set, or removed: then `value` is None."""

    key: str
    value: str | None
    revision: int


@dataclass(frozen=True, slots=True)
class Changes:
    """A message of a watch: everything up to `revision` is known; without events it is a progress notification."""

    revision: int
    events: tuple[Event, ...] = ()


def prefix_range(prefix: str) -> dict[str, str]:
    """Return the range of all keys that begin with a prefix; the empty one has all keys."""
    # No byte of UTF-8 is 255, so the last one can always grow. A zero byte as the end means no end.
    raw = prefix.encode() or b"\0"
    end = raw[:-1] + bytes([raw[-1] + 1]) if prefix else b"\0"
    return {"key": b64encode(raw).decode(), "range_end": b64encode(end).decode()}


def key_range(key: str) -> dict[str, str]:
    """Return the range of one key."""
    return {"key": _coded(key)}


def operation(step: Put | Delete) -> dict[str, Any]:
    """Return a step of a transaction."""
    if isinstance(step, Put):
        lease = {"lease": step.lease} if step.lease else {}
        return {"request_put": {"key": _coded(step.key), "value": _coded(step.value), **lease}}
    return {"request_delete_range": prefix_range(step.key) if step.below else key_range(step.key)}


def transaction(unchanged: Mapping[str, int], steps: Iterable[Put | Delete]) -> dict[str, Any]:
    """Return a transaction.

    Args:
        unchanged: key -> the revision that must have changed it last, 0: it must not be there.
        steps: what to do when all of them are so; when not, they are looked up.
    """
    return {
        "compare": [
            {"key": _coded(key), "target": "MOD", "result": "EQUAL", "mod_revision": str(revision)}
            for key, revision in unchanged.items()
        ],
        "success": [operation(step) for step in steps],
        "failure": [{"request_range": key_range(key)} for key in unchanged],
    }


def revision(answer: Json) -> int:
    """Return the store's revision at the time of an answer."""
    return int(answer["header"]["revision"])


def found(answer: Json) -> Found:
    """Return what a range had."""
    return Found({entry.key: entry for entry in map(_entry, answer.get("kvs", ()))}, revision(answer))


def outcome(answer: Json) -> Outcome:
    """Return what became of a transaction."""
    if answer.get("succeeded", False):
        return Outcome(True, revision(answer))
    ranges = (response["response_range"] for response in answer.get("responses", ()))
    entries = (_entry(each) for one in ranges for each in one.get("kvs", ()))
    return Outcome(False, revision(answer), {entry.key: entry for entry in entries})


def events(result: Json) -> tuple[Event, ...]:
    """Return the events of a message of a watch."""
    return tuple(
        Event(entry.key, None if event.get("type") == "DELETE" else entry.value, entry.revision)
        for event in result.get("events", ())
        for entry in (_entry(event["kv"]),)
    )


def _entry(each: Json) -> Entry:
    return Entry(_decoded(each["key"]), _decoded(each.get("value", "")), int(each["mod_revision"]))


def _coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    # A key or value that is no text was not written by this project; its reader recognizes it.
    return b64decode(text).decode(errors="replace")
