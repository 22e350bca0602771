"""One change at a time of what belongs to one user, within a process.

Each change of a user's jobs writes the user, so of twenty that one daemon makes at once nineteen would lose the first
race, eighteen the second, and so on. One after the other, each races only with those of other nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from weakref import WeakValueDictionary


class Turns:
    """May be used by several threads."""

    def __init__(self) -> None:
        # A lock that nobody holds or waits for is forgotten.
        self._locks: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()
        self._guard = Lock()

    @contextmanager
    def of(self, key: Hashable, patience_s: float) -> Iterator[bool]:
        """Wait until no other thread is in its turn of that key, at most so long; yield whether it is so."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = Lock()
        taken = lock.acquire(timeout=patience_s)
        try:
            yield taken
        finally:
            if taken:
                lock.release()
