"""etcd v3: keys and values as text, transactions that compare revisions, watches that outlive a member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.clients.etcd import wire
from isthmus.clients.etcd.gateway import Access, CompactedError, DeniedError, EtcdError, Gateway, UnavailableError
from isthmus.clients.etcd.watch import Watch
from isthmus.clients.etcd.wire import Changes, Delete, Entry, Event, Found, Outcome, Put

__all__ = [
    "Access",
    "Changes",
    "CompactedError",
    "Delete",
    "DeniedError",
    "Entry",
    "Etcd",
    "EtcdError",
    "Event",
    "Found",
    "Outcome",
    "Put",
    "Space",
    "UnavailableError",
    "Watch",
]


@dataclass(frozen=True, slots=True)
class Space:
    """What etcd's database may take, bytes, and whether it has taken all of it.

    Attributes:
        used: by what is kept; what was compacted away and waits for defragmentation is not counted.
        quota: above this etcd takes no writes.
        is_full: whether it takes none now, on any member, until an admin disarms the alarm.
    """

    used: int
    quota: int
    is_full: bool


class Etcd:
    """A cluster of etcd; may be used by several threads. Every method raises EtcdError in one of its kinds."""

    def __init__(self, access: Access) -> None:
        self._gateway = Gateway(access)

    def get(self, key: str) -> Entry | None:
        """Return a key's entry, None when it is not there."""
        return wire.found(self.call("kv/range", wire.key_range(key))).entries.get(key)

    def range(self, prefix: str, revision: int = 0) -> Found:
        """Return all keys that begin with a prefix, as they are, or as they were at a revision."""
        return wire.found(self.call("kv/range", {**wire.prefix_range(prefix), "revision": str(revision)}))

    def put(self, key: str, value: str) -> int:
        """Set a key; return the store's revision."""
        return wire.revision(self.call("kv/put", wire.operation(Put(key, value))["request_put"]))

    def delete(self, key: str) -> bool:
        """Remove a key; return whether it was there."""
        answer = self.call("kv/deleterange", wire.operation(Delete(key))["request_delete_range"])
        return int(answer.get("deleted", 0)) > 0

    def transact(self, unchanged: Mapping[str, int], steps: Iterable[Put | Delete]) -> Outcome:
        """Do all steps if all compared keys are as they were, else nothing.

        Args:
            unchanged: key -> revision of the entry that was read, 0 when there was none.
            steps: at most 128, each of another key.
        """
        return wire.outcome(self.call("kv/txn", wire.transaction(unchanged, steps)))

    def grant(self, ttl_s: int) -> str:
        """Return the id of a new lease, which ends unless it is kept alive; a new leader counts from the beginning."""
        return str(self.call("lease/grant", {"TTL": str(ttl_s)})["ID"])

    def keep_alive(self, lease: str) -> bool:
        """Let a lease begin again; return whether it was still there. Nothing is written, and no watch hears of it."""
        answer = self.call("lease/keepalive", {"ID": lease})
        if "result" not in answer:
            # An answer of a stream has its error in it.
            raise UnavailableError(str(answer.get("error", {}).get("message", answer)))
        return int(answer["result"].get("TTL", 0)) > 0

    def revoke(self, lease: str) -> None:
        """End a lease."""
        self.call("lease/revoke", {"ID": lease})

    def watch(self, prefix: str, revision: int, log: Callable[[str], None] = lambda text: None) -> Watch:
        """Return a watch of all keys that begin with a prefix.

        Args:
            prefix: of the keys.
            revision: the one whose state is known; later changes are delivered.
            log: takes a line whenever the watch has to connect again.
        """
        return Watch(self._gateway, prefix, revision, log)

    def space(self) -> Space:
        """Return what a member says of its database; alarms are of all members."""
        document = self.call("maintenance/status", {})
        # The database of a full one may have room again: only the alarm says whether it takes writes.
        is_full = any("NOSPACE" in str(error) for error in document.get("errors", ()))
        return Space(int(document.get("dbSizeInUse", 0)), int(document.get("dbSizeQuota", 0)), is_full)

    def call(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for anything else, e.g. `auth/user/list` (etcd's rpc.swagger.json)."""
        return self._gateway.call(path, body)

    def close(self) -> None:
        """Close all connections, those of watches too."""
        self._gateway.close()
