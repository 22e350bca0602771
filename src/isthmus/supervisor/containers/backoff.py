"""Crash-loop back-off of a container: restart immediately, then after 10 s, 20 s ... 300 s, as in Kubernetes.

A container that ran for ten minutes has its back-off reset.
"""

from __future__ import annotations

from isthmus.support.backoff import Backoff

FIRST_S = 10.0
LONGEST_S = 300.0
WELL_S = 2 * LONGEST_S


class BackOff:
    """The back-off of one container."""

    def __init__(self) -> None:
        # Without jitter: events show how long it is.
        self._backoff = Backoff(FIRST_S, LONGEST_S, spread=0.0)
        self._has_ended = False

    def pause_s(self, ran_s: float) -> float:
        """Return the delay after a run of so many seconds."""
        if ran_s >= WELL_S:
            self._has_ended = False
            self._backoff.reset()
        if self._has_ended:
            return self._backoff.next_s()
        self._has_ended = True
        return 0.0
