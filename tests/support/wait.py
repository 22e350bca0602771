"""Waits until something is so, tells what changed meanwhile, and never longer than it must."""

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

    Args:
        observe: Looks at the world once.
        ready: Tells whether a state is the one waited for.
        error: Tells whether a state can never become ready.
        timeout_s: When to give up.
        interval_s: Pause between two looks.
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
