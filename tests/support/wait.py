"""Waits for a condition, and holds one: tests sleep nowhere else (tests/repo/test_timing.py)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

LOG = logging.getLogger(__name__)
State = TypeVar("State")


class WaitError(AssertionError):
    """What was waited for failed or did not come in time."""


def wait(
    observe: Callable[[], State],
    ready: Callable[[State], bool] = bool,
    error: Callable[[State], bool] = lambda state: False,
    *,
    timeout_s: float = 120,
    interval_s: float = 0.5,
) -> State:
    """Return the first observed state that is ready.

    Raises:
        WaitError: a state can never become ready (`error`), or the time limit is over.
    """
    deadline = time.monotonic() + timeout_s
    state: State | None = None
    while True:
        before, state = state, observe()
        if state != before:
            LOG.info("%s", state)
        if ready(state):
            return state
        if error(state):
            raise WaitError(f"this will never become ready: {state}")
        if time.monotonic() >= deadline:
            raise WaitError(f"not ready after {timeout_s} s: {state}")
        time.sleep(interval_s)


def stays(
    observe: Callable[[], State],
    holds: Callable[[State], bool] = bool,
    *,
    seconds: float,
    because: str,
    interval_s: float = 0.1,
) -> State:
    """Return the last observed state after a condition held for a stated time.

    This shows the absence of an event; `because` says why it would have come within that time. Where another event can
    be made that comes after the absent one, wait for that instead.

    Raises:
        WaitError: the condition did not hold.
    """
    begin = time.monotonic()
    while True:
        state = observe()
        passed_s = time.monotonic() - begin
        if not holds(state):
            raise WaitError(f"did not hold for {seconds} s ({because}); after {passed_s:.1f} s: {state}")
        if passed_s >= seconds:
            return state
        time.sleep(min(interval_s, seconds - passed_s))
