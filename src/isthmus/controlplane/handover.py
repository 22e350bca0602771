"""Handover to a successor job, which starts with Slurm's signal before the time limit.

The successor is an ordinary job: it is pending while the present control plane serves, which continues until Slurm
has allocated the other's node, to the last second of its time if need be. So a full partition costs time in the queue,
not downtime. Between the allocation and the start both compete for the reserved address, for
which the successor's prolog waits, or the lock on the data. Both are free when this job has ended.

Slurm is polled seldom: a hundred control planes that wait for a successor make five queries a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from isthmus.clients.slurm.own_jobs import Job
from isthmus.controlplane.layout import JOB_NAME
from isthmus.support.backoff import Backoff

# When everything else has ended, within the half minute that Slurm gives.
_LAST_TRIES = 3
_EARLY_S = 120.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Slurm:
    """Slurm's commands; each may fail.

    Attributes:
        jobs: the user's jobs that have not ended.
        submit: submits a successor, returns its id.
    """

    jobs: Callable[[], Sequence[Job]]
    submit: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Pauses:
    """The first and the longest interval between two polls of Slurm."""

    first_s: float = 2.0
    longest_s: float = 20.0
    growth: float = 1.5


def successor(jobs: Sequence[Job], own: str) -> Job | None:
    """Return the other job that is a control plane, a running one first."""
    others = [job for job in jobs if job.name == JOB_NAME and job.id != own and job.state != "COMPLETING"]
    return min(others, key=lambda job: job.state == "PENDING", default=None)


async def until_there_is_room(slurm: Slurm, own: str, pauses: Pauses = Pauses()) -> str:
    """Submit a successor, again if it is lost, until one has its allocation; return its id."""
    backoff, known = Backoff(pauses.first_s, pauses.longest_s, growth=pauses.growth), ""
    while True:
        try:
            found = await asyncio.to_thread(_have, slurm, own)
        except Exception as error:
            _log.error("no successor could be submitted, retrying: %s", error)
        else:
            if found is not None and found.state != "PENDING":
                _log.info("job %s has its allocation and takes over", found.id)
                return found.id
            if found is not None and found.id != known:
                known = found.id
                _log.info("the time limit is near: job %s is pending", known)
        await asyncio.sleep(backoff.next_s())


def _have(slurm: Slurm, own: str) -> Job | None:
    found = successor(slurm.jobs(), own)
    if found is None:
        slurm.submit()
        # Its state is for the next poll.
    return found


class Handover:
    """The handover of one control plane; inactive until `start`.

    Args:
        slurm: see there.
        own: this job.
        delay_s: how long to wait first.
        pauses: between two polls.
    """

    def __init__(self, slurm: Slurm, own: str, delay_s: Callable[[], float], pauses: Pauses = Pauses()) -> None:
        self._slurm, self._own, self._delay_s, self._pauses = slurm, own, delay_s, pauses
        self._task: asyncio.Task[None] | None = None
        self._is_left = False

    def start(self, leave: Callable[[], None]) -> None:
        """Start; `leave` is called when a successor has its allocation. Idempotent."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(leave), name="hand-over")

    def stop(self) -> None:
        """Stop submitting; a present successor stays."""
        self._is_left = False
        if self._task is not None:
            self._task.cancel()

    def insist(self) -> None:
        """After everything has ended, check that the successor still exists, else submit another."""
        if not self._is_left:
            return
        for _ in range(_LAST_TRIES):
            try:
                _have(self._slurm, self._own)
                return
            except Exception as error:
                _log.error("it is unknown whether there is a successor: %s", error)
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
    # Slurm may signal a minute early; a much earlier signal was sent by a user.
    is_slurms = end - now_s <= handover_s + _EARLY_S
    return max(0.0, start + (end - start) / 2 - now_s) if is_slurms else 0.0
