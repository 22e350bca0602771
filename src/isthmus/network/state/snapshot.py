"""A snapshot of etcd's keys at one revision, and its updates: pure, for load, watch and transactions.

A snapshot knows for each key the revision that changed it last: a transaction compares those of the keys it depends
on. Values of unknown form are refused, never left out: who overlooks a user would give their addresses to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from isthmus.clients.etcd.store import Changes, Event, Found
from isthmus.model.network import Active, Attachment, Exposure, Heard, Job, Lease, Node, State, User
from isthmus.network.state.codec import Guard, Value, decode
from isthmus.network.state.keys import (
    AttachmentKey,
    ExposedKey,
    GatewayKey,
    HeardKey,
    JobKey,
    Key,
    Keys,
    LeaseKey,
    NodeKey,
    RangesKey,
    UserKey,
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one revision.

    Attributes:
        state: nodes, users, jobs, leases, attachments, and what is about gateways.
        guard: what all daemons agree on; None before anything was taken.
        revisions: key -> revision that changed it last.
    """

    state: State = field(default_factory=State)
    guard: Guard | None = None
    revisions: Mapping[Key, int] = field(default_factory=dict)

    def revision_of(self, key: Key) -> int:
        """Return the revision that changed a key last, 0 when it is not there: what a transaction compares."""
        return self.revisions.get(key, 0)

    def jobs(self) -> dict[int, int]:
        """Return all jobs: id -> revision of the entry."""
        return {key.id: revision for key, revision in self.revisions.items() if isinstance(key, JobKey)}


def load(keys: Keys, found: Found) -> Snapshot:
    """Return the snapshot that a range of the whole prefix shows.

    Raises:
        StoredError: etcd has something of another form.
    """
    events = (Event(entry.key, entry.value, entry.revision) for entry in found.entries.values())
    return _changed(Snapshot(), keys, events, found.revision)


def follow(keys: Keys, snapshot: Snapshot, changes: Changes) -> Snapshot:
    """Return the snapshot after some changes; what it has already seen changes nothing.

    Raises:
        StoredError: etcd has something of another form.
    """
    if changes.revision <= snapshot.state.revision:
        return snapshot
    return _changed(snapshot, keys, changes.events, changes.revision)


def _changed(snapshot: Snapshot, keys: Keys, events: Iterable[Event], revision: int) -> Snapshot:
    values: dict[Key, Value | None] = {}
    revisions = dict(snapshot.revisions)
    for event in events:
        key = keys.parse(event.key)
        values[key] = None if event.value is None else decode(keys, event.key, event.value)
        if event.value is None:
            revisions.pop(key, None)
        else:
            revisions[key] = event.revision
    if not values:
        return replace(snapshot, state=replace(snapshot.state, revision=revision))
    tables = _Tables(snapshot)
    for key, value in values.items():
        tables.set(key, value)
    return Snapshot(tables.state(revision), tables.guard, revisions)


class _Tables:
    """A state that is being changed; tables that nothing touches are shared with the former one."""

    def __init__(self, before: Snapshot) -> None:
        self._before = before.state
        self._own: dict[str, dict[Any, Any]] = {}
        self._gateway = before.state.gateway
        self.guard = before.guard

    def set(self, key: Key, value: Value | None) -> None:
        match key, value:
            case RangesKey(), Guard() | None:
                self.guard = value
            case NodeKey(), Node() | None:
                self._put("nodes", key.name, value)
            case UserKey(), User() | None:
                self._put("users", key.uid, value)
            case JobKey(), Job() | None:
                self._put("jobs", key.id, value)
            case LeaseKey(), Lease() | None:
                self._put("leases", (key.uid, key.node), value)
            case AttachmentKey(), Attachment() | None:
                self._put("attachments", (key.job, key.node), value)
            case GatewayKey(), Active() | None:
                self._gateway = value.node if value else ""
            case HeardKey(), Heard() | None:
                self._put("heard", key.node, value)
            case ExposedKey(), Exposure() | None:
                self._put("exposed", (key.address, key.protocol, key.port), value)

    def state(self, revision: int) -> State:
        return replace(self._before, **self._own, gateway=self._gateway, revision=revision)

    def _put(self, table: str, key: object, value: object) -> None:
        if table not in self._own:
            self._own[table] = dict(getattr(self._before, table))
        if value is None:
            self._own[table].pop(key, None)
        else:
            self._own[table][key] = value
