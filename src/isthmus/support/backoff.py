"""Pauses between tries: longer after each failure, up to a limit, and never the same for all who try.

Who lost the same server at the same moment would else ask for it again at the same moments: each pause is drawn from
its upper part. The loop says when it went well (`reset`); it waits itself, in a thread or in an event loop. A loop that
looks at something of its own host, as a folder, needs none: it looks again after the same time.
"""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """The pauses of one loop.

    Args:
        first_s: the first pause at most.
        longest_s: no pause is longer.
        growth: by how much each pause is longer than the one before.
        spread: the share of a pause that is left to chance; 1 for contenders that have met already, 0 for a pause that
            is announced.
        draw: gives a number between two.
    """

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        *,
        growth: float = 2.0,
        spread: float = 0.5,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._growth = growth
        self._spread = spread
        self._draw = draw
        self._next_s = first_s

    def next_s(self) -> float:
        """Return how long to wait now."""
        pause_s, self._next_s = self._next_s, min(self._growth * self._next_s, self._longest_s)
        return self._draw((1 - self._spread) * pause_s, pause_s)

    def reset(self) -> None:
        """Begin with the first pause again: the last try went well."""
        self._next_s = self._first_s
