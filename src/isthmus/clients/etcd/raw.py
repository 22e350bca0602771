"""Keys of etcd whose values are no text, as Kubernetes' are."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass

from isthmus.clients.etcd import wire
from isthmus.clients.etcd.gateway import Gateway


@dataclass(frozen=True, slots=True)
class RawEntry:
    """A key that is there, and the revision that changed it last."""

    key: bytes
    value: bytes
    revision: int


def entries(gateway: Gateway, prefix: str) -> list[RawEntry]:
    """Return all keys that begin with a prefix.

    Raises:
        EtcdError: etcd did not answer.
    """
    found = gateway.call("kv/range", wire.prefix_range(prefix)).get("kvs", ())
    return [RawEntry(b64decode(one["key"]), b64decode(one.get("value", "")), int(one["mod_revision"])) for one in found]


def replace(gateway: Gateway, entry: RawEntry, value: bytes) -> bool:
    """Write another value, unless the key has changed since; return whether it was written.

    Raises:
        EtcdError: etcd did not answer.
    """
    key = b64encode(entry.key).decode()
    compared = {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": str(entry.revision)}
    put = {"request_put": {"key": key, "value": b64encode(value).decode()}}
    return bool(gateway.call("kv/txn", {"compare": [compared], "success": [put]}).get("succeeded"))
