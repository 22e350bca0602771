"""Client of isthmus-jobsd, which polls Slurm once for all kubelets and sends each its user's jobs, and the nodes.

The kubelet falls back to its own polling when the daemon is unreachable, sends an invalid message, is
silent, has had no answer of slurmctld for a minute, or contradicts Slurm (`distrust`). The client reconnects
with a jittered backoff, because all kubelets lose the daemon in the same moment.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from isthmus.clients.job_feed import FeedError
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.pod_jobs import Found
from isthmus.kubelet import metrics
from isthmus.model.job_feed import BEAT_S, Demand, FeedMessageError, Figures, Rows, Update, applied
from isthmus.support.backoff import Backoff

# Three missed heartbeats.
_SILENT_S = 3 * BEAT_S
# Age of slurmctld's last answer, plus a jitter of half of it, before the kubelet polls itself.
_UNANSWERED_S = 60.0
# For a requested answer.
_ANSWER_S = 60.0
# jobsd polls every 300 s at least.
_OLD_S = 600.0
_DISTRUSTED_S = 600.0
# Between two attempts to connect; half of it is jitter.
_RETRY_S, _RETRY_MOST_S = 4.0, 60.0
# How long to wait for the daemon before polling Slurm: at the start, and after it was lost (jittered, at most).
_FIRST_S, _LOST_S = 2.0, 10.0

_log = logging.getLogger(__name__)


class Connection(Protocol):
    """See isthmus.clients.job_feed."""

    async def read(self, timeout_s: float) -> Update:
        """Return the next message."""

    def write(self, demand: Demand) -> None:
        """Send a request."""

    def close(self) -> None:
        """Close the connection."""


class Feed:
    """The view of jobs and nodes that isthmus-jobsd sends.

    Args:
        connect: opens a connection.
        clock: monotonic seconds.
        chance: a number from 0 to 1.

    Attributes:
        changed: set when the view changes; the waiter clears it.
        is_answered: whether slurmctld answered jobsd the last time.
        viewed_s: when Slurm was polled for the present view, by `clock`.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connect, self._clock, self._chance = connect, clock, chance
        self.changed = asyncio.Event()
        self._answers = asyncio.Condition()
        self._connection: Connection | None = None
        self._demand = Demand(_OLD_S)
        self._jobs: Rows | None = None
        self._found: list[Found] = []
        self._nodes: Rows | None = None
        self._asked = 0
        self._distrusted_s = float("-inf")
        self.is_answered, self._unanswered_until_s = True, float("inf")
        self.viewed_s = float("-inf")
        self._awaited_s = clock() + _FIRST_S

    async def run(self) -> None:
        """Connect and read, again and again, for ever."""
        backoff, is_lost = Backoff(_RETRY_S, _RETRY_MOST_S), False
        while True:
            try:
                connection = await self._connect()
            except FeedError as error:
                if not is_lost:
                    _log.info("isthmus-jobsd is unreachable, polling Slurm instead: %s", error)
                is_lost = True
                self._awaited_s = self._clock()
            else:
                is_lost = True
                if await self._follow(connection):
                    backoff.reset()
            self.changed.set()
            await asyncio.sleep(backoff.next_s())

    def usable(self) -> bool:
        """Whether the view is fresh enough not to poll Slurm."""
        now_s = self._clock()
        return (
            self._jobs is not None
            and now_s - self.viewed_s <= _OLD_S
            and now_s - self._distrusted_s >= _DISTRUSTED_S
            and (self.is_answered or now_s <= self._unanswered_until_s)
        )

    def hold_s(self) -> float:
        """Return how long to wait for the daemon before polling Slurm."""
        return 0.0 if self.usable() else max(0.0, self._awaited_s - self._clock())

    def jobs(self) -> list[Found]:
        """Return the user's jobs, as `PodJobs.queue` does."""
        return self._found

    def nodes(self) -> Rows | None:
        """Return sinfo's rows; None if the daemon does not send them."""
        return self._nodes

    def want(self, pause_s: float) -> None:
        """Send the daemon the largest age of the view."""
        if self._connection and pause_s != self._demand.pause_s:
            self._demand = Demand(pause_s, self._demand.ask)
            self._connection.write(self._demand)

    def report(self, figures: Figures) -> None:
        """Send the daemon figures of this kubelet; lost where there is no connection."""
        if self._connection:
            self._connection.write(replace(self._demand, figures=figures))

    async def answer(self) -> list[Found]:
        """Return the user's jobs from a poll that starts after this call.

        Raises:
            FeedError: no such answer.
        """
        if self._connection is None:
            raise FeedError("isthmus-jobsd is unreachable")
        self._demand = Demand(self._demand.pause_s, self._demand.ask + 1)
        self._connection.write(self._demand)
        connection, wanted = self._connection, self._demand.ask
        try:
            async with asyncio.timeout(_ANSWER_S), self._answers:
                await self._answers.wait_for(lambda: self._connection is not connection or self._asked >= wanted)
        except TimeoutError as error:
            self.distrust("it asks nothing when it should")
            raise FeedError("isthmus-jobsd did not poll Slurm") from error
        if self._connection is not connection:
            raise FeedError("isthmus-jobsd disconnected")
        return self._found

    def distrust(self, reason: str) -> None:
        """Ignore the daemon for some minutes."""
        _log.warning("isthmus-jobsd is ignored for %.0f s: %s", _DISTRUSTED_S, reason)
        metrics.FEED_DISTRUSTS.inc()
        self._distrusted_s = self._clock()
        self.changed.set()

    async def _follow(self, connection: Connection) -> bool:
        """Read until the connection ends; return whether a message came."""
        self._connection, self._asked, self._jobs, self._nodes = connection, 0, None, None
        self._demand = Demand(self._demand.pause_s, 0)
        heard = False
        try:
            connection.write(self._demand)
            while True:
                await self._take(await connection.read(_SILENT_S))
                heard = True
        except (FeedError, FeedMessageError) as error:
            _log.warning("the connection to isthmus-jobsd is lost: %s", error)
        finally:
            connection.close()
            self._connection = self._jobs = self._nodes = None
            self._awaited_s = self._clock() + self._chance() * _LOST_S
            async with self._answers:
                self._answers.notify_all()
        return heard

    async def _take(self, update: Update) -> None:
        now_s = self._clock()
        if update.jobs is not None:
            self._jobs = applied(self._jobs, update.jobs)
            self._found = pod_jobs.found(self._jobs.values())
            metrics.FEED_CHANGES.inc()
        elif self._jobs is None:
            raise FeedMessageError("jobsd's first message has no jobs")
        if update.nodes is not None:
            self._nodes = applied(self._nodes, update.nodes)
        if self.is_answered and not update.is_answered:
            self._unanswered_until_s = now_s + _UNANSWERED_S * (1 + self._chance() / 2)
        self.is_answered = update.is_answered
        self.viewed_s = now_s - update.age_s
        self.changed.set()
        async with self._answers:
            self._asked = update.asked
            self._answers.notify_all()
