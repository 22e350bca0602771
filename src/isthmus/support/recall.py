"""Values by key, each with the source it was made of: who follows a large state again and again makes what is new.

It makes things faster, never different.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Memory:
    """For one thread; what a round did not ask for is forgotten."""

    def __init__(self) -> None:
        self._old: dict[object, tuple[object, Any]] = {}
        self._new: dict[object, tuple[object, Any]] = {}

    def recall(self, key: object, source: object, make: Callable[[S], T], argument: S) -> T:
        """Return `make(argument)`, made now if the source is another one than last time."""
        known = self._old.get(key)
        if known is None or (known[0] is not source and known[0] != source):
            known = (source, make(argument))
        self._new[key] = known
        value: T = known[1]
        return value

    def same(self, key: object, value: T) -> T:
        """Return an equal value of last time in place of a new one: who compares values sees at once what changed."""
        known = self._old.get(key, (None, value))
        if known[1] != value:
            known = (None, value)
        self._new[key] = known
        kept: T = known[1]
        return kept

    def turn(self) -> None:
        """End a round."""
        self._old, self._new = self._new, {}
