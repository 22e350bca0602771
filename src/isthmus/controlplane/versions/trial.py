"""A trial: the start of a version on data of another one, which serves, or is over after some deaths or some time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from isthmus.controlplane.process_supervisor import Condition, Keeper, ProgramState

_LOOK_S = 0.2
_NOBODY = frozenset({"kubelet"})


@dataclass(frozen=True, slots=True)
class Limits:
    """When a version that is not ready has failed.

    Attributes:
        deaths: so many restarts of one program.
        ready_s: from its start.
    """

    deaths: int = 3
    ready_s: float = 300.0


@dataclass(slots=True)
class Trial:
    """One trial.

    Attributes:
        is_last: this version is to serve; others end when they are ready.
        record: writes down that it serves; may raise OSError.
        limits: see there.
        failed: why it failed.
        over: set when it is ready and that is recorded.
    """

    is_last: bool
    record: Callable[[], None] = lambda: None
    limits: Limits = Limits()
    failed: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, keeper: Keeper) -> None:
        """Stop the keeper when the version has failed."""
        deadline_s = time.monotonic() + self.limits.ready_s
        while not self.over.is_set():
            late = time.monotonic() > deadline_s
            if reason := failure(keeper.conditions, self.limits, late=late):
                self.failed = reason
                keeper.stop()
                return
            await asyncio.sleep(_LOOK_S)


def failure(conditions: Mapping[str, Condition], limits: Limits, *, late: bool) -> str:
    """Return why programs will not become ready; empty as long as they may."""
    those = {name: each for name, each in conditions.items() if name not in _NOBODY}
    for name, each in those.items():
        if each.restarts >= limits.deaths:
            return f"{name} {each.ended}: {each.said}" if each.said else f"{name} {each.ended}"
    if not late:
        return ""
    waiting = [name for name, each in those.items() if each.state is not ProgramState.READY]
    lacks = f"{', '.join(waiting)} not ready" if waiting else "its own objects could not be made"
    return f"{lacks} after {limits.ready_s:.0f} s"
