"""The jobs and nodes that isthmus-jobsd sends: one source for all kubelets, so that none has to ask Slurm itself.

Whatever is wrong with it, the kubelet asks Slurm as it would without it: when it is away, says what cannot be read, is
silent, has had no answer of slurmctld for a minute, or has said what Slurm itself denies (`distrust`). It is tried
again by itself, after pauses that differ between kubelets: all of them lose it in the same moment.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from isthmus.clients.job_feed import FeedError
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.pod_jobs import Found
from isthmus.kubelet.api.stats import COUNTS
from isthmus.model.job_feed import BEAT_S, Demand, FeedMessageError, Rows, Update, applied

# Three signs of life are missing.
_SILENT_S = 3 * BEAT_S
# Without an answer of slurmctld, and by chance half more: until then nobody else needs to ask it, too.
_UNANSWERED_S = 60.0
# For an answer that was asked for.
_ANSWER_S = 60.0
# jobsd asks each 300 s at least.
_OLD_S = 600.0
_DISTRUSTED_S = 600.0
# Between two tries to connect: half of it by chance.
_RETRY_S, _RETRY_MOST_S = 2.0, 60.0
# How long it is waited for before Slurm is asked instead: at the start, and when it was there (by chance, at most).
_FIRST_S, _LOST_S = 2.0, 10.0

_log = logging.getLogger(__name__)


class Connection(Protocol):
    """isthmus.clients.job_feed says what each does."""

    async def read(self, timeout_s: float) -> Update:
        """Return what jobsd says next."""

    def write(self, demand: Demand) -> None:
        """Say what is wanted."""

    def close(self) -> None:
        """End it."""


class Feed:
    """What jobsd sends.

    Args:
        connect: opens a connection.
        clock: seconds that never go back.
        chance: a number from 0 to 1.

    Attributes:
        changed: set whenever something of it is new; who waits clears it.
        is_answered: whether slurmctld answered jobsd the last time.
        viewed_s: when Slurm was asked for what is known, by `clock`.
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
        tries = 0
        while True:
            try:
                connection = await self._connect()
            except FeedError as error:
                if not tries:
                    _log.info("isthmus-jobsd is not there, Slurm is asked instead: %s", error)
                tries += 1
                self._awaited_s = self._clock()
            else:
                tries = 1 if await self._follow(connection) else tries + 1
            self.changed.set()
            await asyncio.sleep(min(_RETRY_S * 2 ** min(tries, 10), _RETRY_MOST_S) * (0.5 + self._chance() / 2))

    def usable(self) -> bool:
        """Whether Slurm need not be asked."""
        now_s = self._clock()
        return (
            self._jobs is not None
            and now_s - self.viewed_s <= _OLD_S
            and now_s - self._distrusted_s >= _DISTRUSTED_S
            and (self.is_answered or now_s <= self._unanswered_until_s)
        )

    def hold_s(self) -> float:
        """Return for how long it is worth waiting for it before Slurm is asked."""
        return 0.0 if self.usable() else max(0.0, self._awaited_s - self._clock())

    def jobs(self) -> list[Found]:
        """Return the user's jobs, as `PodJobs.queue` does."""
        return self._found

    def nodes(self) -> Rows | None:
        """Return sinfo's rows; None where they are not told."""
        return self._nodes

    def want(self, pause_s: float) -> None:
        """Say how old the view may become."""
        if self._connection and pause_s != self._demand.pause_s:
            self._demand = Demand(pause_s, self._demand.ask)
            self._connection.write(self._demand)

    async def answer(self) -> list[Found]:
        """Return the user's jobs as Slurm says they are from now on.

        Raises:
            FeedError: nobody says so.
        """
        if self._connection is None:
            raise FeedError("isthmus-jobsd is not there")
        self._demand = Demand(self._demand.pause_s, self._demand.ask + 1)
        self._connection.write(self._demand)
        connection, wanted = self._connection, self._demand.ask
        try:
            async with asyncio.timeout(_ANSWER_S), self._answers:
                await self._answers.wait_for(lambda: self._connection is not connection or self._asked >= wanted)
        except TimeoutError as error:
            self.distrust("it asks nothing when it should")
            raise FeedError("isthmus-jobsd did not ask Slurm") from error
        if self._connection is not connection:
            raise FeedError("isthmus-jobsd went away")
        return self._found

    def distrust(self, reason: str) -> None:
        """Do without it for some minutes."""
        _log.warning("what isthmus-jobsd says is not used for %.0f s: %s", _DISTRUSTED_S, reason)
        COUNTS["feed_distrusts"] += 1
        self._distrusted_s = self._clock()
        self.changed.set()

    async def _follow(self, connection: Connection) -> bool:
        """Read until it ends; return whether it had anything to say."""
        self._connection, self._asked, self._jobs, self._nodes = connection, 0, None, None
        self._demand = Demand(self._demand.pause_s, 0)
        heard = False
        try:
            connection.write(self._demand)
            while True:
                await self._take(await connection.read(_SILENT_S))
                heard = True
        except (FeedError, FeedMessageError) as error:
            _log.warning("isthmus-jobsd is lost: %s", error)
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
            COUNTS["feed_changes"] += 1
        elif self._jobs is None:
            raise FeedMessageError("jobsd's first words have no jobs")
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
