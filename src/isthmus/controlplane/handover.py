"""The way to a successor, from Slurm's signal before the time limit on.

The successor is an ordinary job: it waits in the queue beside the control plane that serves, which goes on until Slurm
has given the other its place, to the last second of its time if need be. So a full partition costs time in the queue,
not time without a cluster. Between a place and a start lies what only one of both can have: the reserved address, for
which the successor's prolog waits, or the lock on the data. Both are free when this job has ended.

Slurm is asked seldom: of a hundred control planes that wait for a successor, five times a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from isthmus.clients.slurm.own_jobs import Job
from isthmus.controlplane.layout import JOB_NAME

# When everything else has ended, within the half minute that Slurm gives.
_LAST_TRIES = 3
_EARLY_S = 120.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Slurm:
    """What is asked of it; anything may fail.

    Attributes:
        jobs: the user's jobs that have not ended.
        submit: submits a successor, returns its id.
    """

    jobs: Callable[[], Sequence[Job]]
    submit: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Pauses:
    """Between two looks at Slurm: they grow from the first to the longest."""

    first_s: float = 2.0
    longest_s: float = 20.0
    growth: float = 1.5


def successor(jobs: Sequence[Job], own: str) -> Job | None:
    """Return the other job that is a control plane, one with a place first."""
    others = [job for job in jobs if job.name == JOB_NAME and job.id != own and job.state != "COMPLETING"]
    return min(others, key=lambda job: job.state == "PENDING", default=None)


async def until_there_is_room(slurm: Slurm, own: str, pauses: Pauses = Pauses()) -> str:
    """Have a successor, again and again, until Slurm has given one its place; return its id."""
    pause_s, known = pauses.first_s, ""
    while True:
        try:
            found = await asyncio.to_thread(_have, slurm, own)
        except Exception as error:
            _log.error("no successor could be submitted, it is tried again: %s", error)
        else:
            if found is not None and found.state != "PENDING":
                _log.info("job %s has its place and goes on", found.id)
                return found.id
            if found is not None and found.id != known:
                known = found.id
                _log.info("the time limit is near: job %s waits for its place", known)
        await asyncio.sleep(pause_s)
        pause_s = min(pauses.longest_s, pause_s * pauses.growth)


def _have(slurm: Slurm, own: str) -> Job | None:
    found = successor(slurm.jobs(), own)
    if found is None:
        slurm.submit()
        # Its state is for the next look to tell.
    return found


class Handover:
    """What one control plane does for its successor; nothing until `start`.

    Args:
        slurm: see there.
        own: this job.
        delay_s: how long to wait first.
        pauses: between two looks.
    """

    def __init__(self, slurm: Slurm, own: str, delay_s: Callable[[], float], pauses: Pauses = Pauses()) -> None:
        self._slurm, self._own, self._delay_s, self._pauses = slurm, own, delay_s, pauses
        self._task: asyncio.Task[None] | None = None
        self._is_left = False

    def start(self, leave: Callable[[], None]) -> None:
        """Begin; `leave` is called when Slurm has given a successor its place. Once is enough."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(leave), name="hand-over")

    def stop(self) -> None:
        """Submit no successor any more; one that is there stays."""
        self._is_left = False
        if self._task is not None:
            self._task.cancel()

    def insist(self) -> None:
        """See that the successor is still there, now that all has ended; else submit another."""
        if not self._is_left:
            return
        for _ in range(_LAST_TRIES):
            try:
                _have(self._slurm, self._own)
                return
            except Exception as error:
                _log.error("nobody can tell whether there is a successor: %s", error)
            time.sleep(self._pauses.first_s)

    async def _run(self, leave: Callable[[], None]) -> None:
        await asyncio.sleep(self._delay_s())
        await until_there_is_room(self._slurm, self._own, self._pauses)
        self._is_left = True
        leave()


def delay_s(environment: Mapping[str, str], handover_s: float, now_s: float | None = None) -> float:
    """Return how long to wait after Slurm's signal: of a short job, until half of its time has gone.

    Slurm signals a job that is shorter than `handover_s` as soon as it begins. Without this it would do nothing but
    hand over to the next.
    """
    try:
        start, end = (int(environment[name]) for name in ("SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"))
    except (KeyError, ValueError):
        return 0.0
    now_s = time.time() if now_s is None else now_s
    # Slurm may signal a minute early; a signal long before is somebody's wish.
    is_slurms = end - now_s <= handover_s + _EARLY_S
    return max(0.0, start + (end - start) / 2 - now_s) if is_slurms else 0.0
