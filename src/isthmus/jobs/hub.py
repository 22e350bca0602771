"""Subscriptions of kubelets, and the one view of jobs that all of them share.

A view is a mapping that never changes; a new answer of Slurm makes a new one. Each kubelet remembers the view that it
was sent, so what it is sent next is the difference, however many answers came between. No queue grows behind a slow
reader.

A question that fails changes nothing but `is_answered`: that slurmctld is silent never means that jobs are gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol

from isthmus.clients.slurm.commands import SlurmError
from isthmus.jobs import pace
from isthmus.model.job_feed import Demand, Figures, Rows, Update, difference
from isthmus.support.threads import Threads

# Connections of one account: a kubelet, its successor, and a look at it.
EACH_MOST = 4
# Jobs of one account: MaxJobCount, by default, is as much for all.
JOBS_MOST = 10_000
# For so long what a kubelet reported is shown: two reports may be lost.
FIGURES_S = 180.0
# Between two looks at what Slurm hides.
HIDDEN_S = 600.0

_NO_ROWS: Rows = {}

_log = logging.getLogger(__name__)


class Slurm(Protocol):
    """What is asked of Slurm; isthmus.clients.slurm.all_jobs says what each does. All of them block."""

    def queue(self, users: Collection[int]) -> Mapping[int, Rows]:
        """Return the jobs of users."""

    def nodes(self) -> Rows:
        """Return the nodes."""

    def hidden(self) -> frozenset[str]:
        """Return what Slurm hides from us."""


class Subscriber:
    """A kubelet's connection; `end` ends it.

    Attributes:
        uid: whose jobs it is sent.
        due: set when there is something to send.
    """

    def __init__(self, uid: int, end: Callable[[str], None]) -> None:
        self.uid, self.end = uid, end
        self.due = asyncio.Event()
        self.demand = Demand(pace.MOST_S)
        self.reported: tuple[float, Figures] | None = None
        self.asked: int | None = None
        self.sent: tuple[int | None, bool] = (None, True)
        self.jobs: Rows | None = None
        self.nodes: Rows | None = None

    @property
    def wanted_s(self) -> float:
        """How old its view may become; 0 when it waits for an answer."""
        return 0.0 if self.asked is None or self.demand.ask > self.asked else self.demand.pause_s


class Hub:
    """Asks Slurm for all subscribers.

    Args:
        slurm: is asked.
        clock: seconds that never go back.
    """

    def __init__(self, slurm: Slurm, clock: Callable[[], float] = time.monotonic) -> None:
        self._slurm, self._clock = slurm, clock
        self._subscribers: list[Subscriber] = []
        self._jobs: Mapping[int, Rows] = {}
        self._nodes: Rows | None = None
        self._viewed_s = self._asked_s = self._nodes_s = self._hidden_due_s = float("-inf")
        self._took_s = self._nodes_took_s = 0.0
        self._failures = 0
        # Not known yet: until then nothing is passed on.
        self._hidden: frozenset[str] | None = None
        self._wakened = asyncio.Event()
        self._questions = Threads("squeue", 1)
        self.counts: Counter[str] = Counter()

    @property
    def size(self) -> tuple[int, int]:
        """How many kubelets there are, and of how many accounts."""
        return len(self._subscribers), len({one.uid for one in self._subscribers})

    @property
    def figures(self) -> Mapping[int, Figures]:
        """What kubelets reported lately, by account; of several kubelets of one the newest connection's."""
        least_s = self._clock() - FIGURES_S
        reported = ((one.uid, one.reported) for one in self._subscribers if one.reported)
        return {uid: figures for uid, (at_s, figures) in reported if at_s >= least_s}

    @property
    def age_s(self) -> float:
        """How old the view is; endless when there is none."""
        return self._clock() - self._viewed_s

    def subscribe(self, uid: int, end: Callable[[str], None]) -> Subscriber:
        """Add a kubelet; of an account that has too many the oldest is ended."""
        mine = [one for one in self._subscribers if one.uid == uid]
        if len(mine) >= EACH_MOST:
            self.counts["surplus"] += 1
            self.unsubscribe(mine[0])
            mine[0].end("this account has newer connections")
        made = Subscriber(uid, end)
        self._subscribers.append(made)
        self._wakened.set()
        return made

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a kubelet that may have gone already."""
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)

    def demand(self, subscriber: Subscriber, demand: Demand) -> None:
        """Take what a kubelet wants."""
        if demand.figures is not None:
            subscriber.reported = self._clock(), demand.figures
            demand = replace(demand, figures=None)
        if demand != subscriber.demand:
            subscriber.demand = demand
            self._wakened.set()

    def update(self, subscriber: Subscriber) -> Update | None:
        """Return what to send a kubelet now, and take it as sent; None while it has no view yet."""
        subscriber.due.clear()
        if subscriber.asked is None:
            return None
        jobs, nodes = self._jobs.get(subscriber.uid, _NO_ROWS), self._nodes
        changed = difference(subscriber.jobs, jobs)
        moved = None if nodes is None else difference(subscriber.nodes, nodes)
        subscriber.jobs, subscriber.nodes = jobs, nodes
        subscriber.sent = subscriber.asked, not self._failures
        return Update(subscriber.asked, self.age_s, not self._failures, changed or None, moved or None)

    async def run(self) -> None:
        """Ask, for ever."""
        try:
            while True:
                await self._wait()
                await self.step()
        finally:
            self._questions.stop()

    def pause_s(self) -> float:
        """Return the seconds until the next question; endless when nobody is there."""
        if not self._subscribers:
            return float("inf")
        due_s = self._hidden_due_s if self._hidden is None else min(self._jobs_due_s(), self._nodes_due_s())
        return max(0.0, due_s - self._clock())

    async def step(self) -> None:
        """Ask for what is due."""
        if self._hidden_due_s <= self._clock():
            await self._look_hidden()
        if self._hidden and "jobs" in self._hidden:
            self._refuse("Slurm hides other accounts' jobs from isthmus-jobsd (PrivateData): make it an operator")
        if self._hidden is None or not self._subscribers:
            return
        if self._jobs_due_s() <= self._clock():
            await self._ask_jobs()
        if self._nodes_due_s() <= self._clock():
            await self._ask_nodes()

    async def _wait(self) -> None:
        pause_s = self.pause_s()
        self._wakened.clear()
        if pause_s <= 0:
            return
        try:
            async with asyncio.timeout(None if pause_s == float("inf") else pause_s):
                await self._wakened.wait()
        except TimeoutError:
            pass

    def _jobs_due_s(self) -> float:
        wanted_s = (one.wanted_s for one in self._subscribers)
        return self._asked_s + pace.jobs_s(wanted_s, self._took_s, self._failures)

    def _nodes_due_s(self) -> float:
        if self._hidden is None or {"nodes", "partitions"} & self._hidden:
            return float("inf")
        return self._nodes_s + pace.nodes_s(self._nodes_took_s)

    async def _ask_jobs(self) -> None:
        """Ask once; it answers requests of before its start."""
        asks = {one: one.demand.ask for one in self._subscribers}
        began_s = self._asked_s = self._clock()
        self.counts["squeue"] += 1
        try:
            found = await self._questions.call(self._slurm.queue, {one.uid for one in asks})
        except SlurmError as error:
            self._failures += 1
            self.counts["failures"] += 1
            _log.warning("nothing is known of any job now: %s", error)
            found = None
        else:
            self._failures, self._took_s, self._viewed_s = 0, self._clock() - began_s, began_s
        if found is not None:
            self._take(found, asks)
        self._push()

    def _take(self, found: Mapping[int, Rows], asks: Mapping[Subscriber, int]) -> None:
        # Equal rows stay the same object: who compares them later looks no further.
        self._jobs = {uid: self._jobs[uid] if self._jobs.get(uid) == rows else rows for uid, rows in found.items()}
        for one, ask in asks.items():
            one.asked = ask
            if len(self._jobs.get(one.uid, ())) > JOBS_MOST and one in self._subscribers:
                self.unsubscribe(one)
                one.end(f"more than {JOBS_MOST} jobs of one account")

    async def _ask_nodes(self) -> None:
        began_s = self._nodes_s = self._clock()
        self.counts["sinfo"] += 1
        try:
            self._nodes = await self._questions.call(self._slurm.nodes)
        except SlurmError as error:
            self.counts["failures"] += 1
            _log.warning("%s", error)
        self._nodes_took_s = self._clock() - began_s
        self._push()

    async def _look_hidden(self) -> None:
        self.counts["scontrol"] += 1
        try:
            self._hidden = await self._questions.call(self._slurm.hidden)
            self._hidden_due_s = self._clock() + HIDDEN_S
        except SlurmError as error:
            # Until then what was known holds.
            self._hidden_due_s = self._clock() + pace.FAILED_MOST_S
            _log.warning("%s", error)

    def _refuse(self, words: str) -> None:
        for one in [*self._subscribers]:
            self.unsubscribe(one)
            one.end(words)

    def _push(self) -> None:
        """Wake those for whom there is news."""
        for one in self._subscribers:
            news = one.sent != (one.asked, not self._failures)
            moved = _differs(one.nodes, self._nodes) or _differs(one.jobs, self._jobs.get(one.uid, _NO_ROWS))
            if one.asked is not None and (news or moved):
                one.due.set()


def _differs(old: Rows | None, new: Rows | None) -> bool:
    return new is not None and old is not new and old != new
