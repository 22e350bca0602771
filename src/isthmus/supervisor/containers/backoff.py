"""When a container that ended starts again: at once, then after 10 s, 20 s ... 300 s, as in Kubernetes.

A container that ran for ten minutes is well again: it begins anew.
"""

from __future__ import annotations

FIRST_S = 10.0
LONGEST_S = 300.0
WELL_S = 2 * LONGEST_S


class BackOff:
    """The pauses of one container."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def pause_s(self, ran_s: float) -> float:
        """Return how long to wait after a run of so many seconds."""
        if ran_s >= WELL_S:
            self._next_s = 0.0
        pause_s, self._next_s = self._next_s, min(max(2 * self._next_s, FIRST_S), LONGEST_S)
        return pause_s
