"""Snapshots of one etcd: detects changes, writes the whole content to a file, verifies such a file.

A snapshot is the database and behind it the sha256 of it (etcd, server/etcdserver/api/v3rpc/maintenance.go): a
database is made of whole pages, so 32 odd bytes mean that the hash is there (etcdutl, snapshot/v3_snapshot.go).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from isthmus.clients.etcd.gateway import EtcdError, Gateway, UnavailableError
from isthmus.clients.http import NoAnswerError

_BLOCK_BYTES = 1 << 20
_PAGE_BYTES = 512
_HASH_BYTES = sha256().digest_size

Bounds = tuple[tuple[str, str], ...]
"""Ranges of keys, each from the first of them to before the second."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of the content: equal marks, equal content.

    What is written changes the highest revision of a key; where keys were only removed there are fewer of them.
    """

    ranges: tuple[tuple[int, int], ...]


class Snapshots:
    """Reads one etcd without authentication."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def mark(self, bounds: Bounds) -> Mark:
        """Return the state of some ranges of keys.

        Raises:
            EtcdError: no answer.
        """
        return Mark(tuple(self._newest(first, before) for first, before in bounds))

    def revision(self) -> int:
        """Return the revision of the whole.

        Raises:
            EtcdError: no answer.
        """
        return int(self._gateway.call("maintenance/status", {})["header"]["revision"])

    def save(self, file: BinaryIO) -> int:
        """Write a snapshot; return its bytes.

        Raises:
            EtcdError: no answer, or it broke off.
            OSError: the file cannot be written.
        """
        hasher, tail, size = sha256(), b"", 0
        for blob in self._blobs():
            file.write(blob)
            size += len(blob)
            tail += blob
            hasher.update(tail[:-_HASH_BYTES])
            tail = tail[-_HASH_BYTES:]
        if size % _PAGE_BYTES != _HASH_BYTES or hasher.digest() != tail:
            raise UnavailableError(f"the snapshot broke off after {size} bytes")
        return size

    def close(self) -> None:
        """Close its connections."""
        self._gateway.close()

    def _newest(self, first: str, before: str) -> tuple[int, int]:
        asked = {"key": _encoded(first), "range_end": _encoded(before), "limit": "1", "keys_only": True}
        document = self._gateway.call("kv/range", {**asked, "sort_order": "DESCEND", "sort_target": "MOD"})
        return int(document.get("count", 0)), max(
            (int(each["mod_revision"]) for each in document.get("kvs", ())), default=0
        )

    def _blobs(self) -> Iterator[bytes]:
        try:
            with self._gateway.stream("maintenance/snapshot", {}) as answer:
                for line in answer.lines():
                    yield base64.b64decode(json.loads(line)["result"].get("blob", ""))
        except NoAnswerError as error:
            raise UnavailableError(f"the snapshot broke off: {error}") from error
        except (ValueError, KeyError) as error:
            raise EtcdError(f"no part of a snapshot: {error!r}") from error


def is_whole(path: Path) -> bool:
    """Return whether a file is a snapshot as it was taken.

    Raises:
        OSError: it cannot be read.
    """
    left = path.stat().st_size - _HASH_BYTES
    if left <= 0 or left % _PAGE_BYTES:
        return False
    hasher = sha256()
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(_BLOCK_BYTES, left))):
            hasher.update(block)
            left -= len(block)
        return hasher.digest() == file.read(_HASH_BYTES)


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
