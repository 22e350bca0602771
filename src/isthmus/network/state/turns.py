"""One change at a time of what belongs to one user, within a process.

Each change of a user's jobs writes the user, so of twenty that one daemon makes at once nineteen would lose the first
race, eighteen the second, and so on. One after the other, each races only with those of other nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from weakref import WeakValueDictionary

from isthmus.network.state.snapshot import Snapshot


class Turn:
    """What those who want the same key wait for.

    Attributes:
        at: what the last change of one of them left, on which the next one decides: the feed may lag behind it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.at: Snapshot | None = None


class Turns:
    """May be used by several threads."""

    def __init__(self) -> None:
        # One that nobody has or waits for is forgotten.
        self._turns: WeakValueDictionary[Hashable, Turn] = WeakValueDictionary()
        self._guard = Lock()

    @contextmanager
    def of(self, key: Hashable, patience_s: float) -> Iterator[Turn]:
        """Wait until no other thread is in its turn of that key, at most so long."""
        with self._guard:
            turn = self._turns.get(key)
            if turn is None:
                turn = self._turns[key] = Turn()
        taken = turn.lock.acquire(timeout=patience_s)
        try:
            yield turn
        finally:
            if taken:
                turn.lock.release()
