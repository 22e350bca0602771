"""A Slurm of many users, in memory, and the way from jobsd's hub to a kubelet's feed without a network."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from isthmus.clients.job_feed import FeedError
from isthmus.clients.slurm import pod_jobs
from isthmus.clients.slurm.pod_jobs import Found, NoAnswerError
from isthmus.jobs.hub import Hub
from isthmus.model import job_feed
from isthmus.model.job_feed import Demand, Row, Rows, Update
from isthmus.model.pod_job import SlurmJob

NODES: Rows = {"c1 main*": ("c1", "main*", "up", "32", "8192", "(null)", "(null)", "idle")}


class SharedSlurm:
    """Jobs of users; requests are counted, by the time of a clock.

    Attributes:
        silent: nothing is answered.
        hides: in the words of PrivateData.
        asked: how often each program was called.
    """

    def __init__(self) -> None:
        self.silent = False
        self.hides: frozenset[str] = frozenset()
        self.asked: Counter[str] = Counter()
        self.rows: dict[int, dict[str, Row]] = {}

    def set(self, uid: int, job: str, state: str, comment: str) -> None:
        """Have a job in a state."""
        start = "N/A" if state == "PENDING" else "1700000000"
        nodes = "" if state == "PENDING" else "c1"
        self.rows.setdefault(uid, {})[job] = (job, state, nodes, start, "N/A", "None", comment)

    def queue(self, users: Collection[int]) -> Mapping[int, Rows]:
        """Answer as all_jobs does."""
        self._answer("squeue")
        return {uid: dict(self.rows.get(uid, {})) for uid in users}

    def nodes(self) -> Rows:
        """Answer as all_jobs does."""
        self._answer("sinfo")
        return NODES

    def hidden(self) -> frozenset[str]:
        """Answer as all_jobs does."""
        self._answer("scontrol")
        return self.hides

    def _answer(self, program: str) -> None:
        self.asked[program] += 1
        if self.silent:
            raise NoAnswerError("Slurm does not answer")


class UserSlurm:
    """The same Slurm, as the kubelet of one user asks it."""

    def __init__(self, shared: SharedSlurm, uid: int) -> None:
        self._shared, self._uid = shared, uid

    def submit(self, options: Iterable[str], script: str) -> str:
        """Nothing is submitted here."""
        raise AssertionError(options)

    def queue(self) -> list[Found]:
        """Answer as squeue does."""
        self._shared._answer("own squeue")
        return pod_jobs.found(self._shared.rows.get(self._uid, {}).values())

    def accounted(self, jobs: Iterable[str]) -> list[SlurmJob]:
        """Answer as sacct does of jobs it does not know."""
        self._shared._answer("own sacct")
        return []

    def cancel(self, jobs: Collection[str]) -> None:
        """Nothing is cancelled here."""
        raise AssertionError(jobs)


class Wire:
    """A connection of a kubelet to a hub; every word passes as a line."""

    def __init__(self, hub: Hub, uid: int) -> None:
        self._hub, self._ended = hub, ""
        self._subscriber = hub.subscribe(uid, self._end)

    async def read(self, timeout_s: float) -> Update:
        """Return what jobsd says next."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(job_feed.BEAT_S):
                    await self._subscriber.due.wait()
            if self._ended:
                raise FeedError(self._ended)
            if update := self._hub.update(self._subscriber):
                return job_feed.read_update(job_feed.write_update(update))

    def write(self, demand: Demand) -> None:
        """Say what is wanted."""
        self._hub.demand(self._subscriber, job_feed.read_demand(job_feed.write_demand(demand)))

    def close(self) -> None:
        """End it."""
        self._hub.unsubscribe(self._subscriber)

    def _end(self, words: str) -> None:
        self._ended = words
        self._subscriber.due.set()


def wired(hub: Hub, uid: int, is_there: Callable[[], bool] = lambda: True) -> Callable[[], object]:
    """Return what connects a kubelet to a hub, while that is there."""

    async def connect() -> Wire:
        if not is_there():
            raise FeedError("refused")
        return Wire(hub, uid)

    return connect
