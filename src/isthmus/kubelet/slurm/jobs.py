"""What Slurm knows of the pods' jobs, asked for all at once, and the way of a pod to its one job.

A round is one squeue, and one sacct when a job has left the queue. No answer leaves everything as it was. A job is
GONE only when both have answered, several times over a minute, and neither knows it: accounting may be late. A job is
a pod's when its comment says so: a Slurm that has lost its state, or had MaxJobId jobs, gives ids out again. Only such
jobs are ended. Those that shall end while a scancel is under way are ended by the next one, all at once. Submissions,
questions and scancel have threads of their own: each may wait a minute for slurmctld. `pace` says how long to wait
between two rounds.

Where isthmus-jobsd is (`feed`), it asks for all kubelets, and what changes comes by itself; a round asks it for an
answer from now on. That it does not show a job is a doubt, no more: Slurm itself is asked before anything follows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from isthmus.clients.job_feed import FeedError
from isthmus.clients.slurm.commands import SlurmError
from isthmus.clients.slurm.pod_jobs import Found, RefusedError
from isthmus.kubelet.api.stats import COUNTS
from isthmus.kubelet.slurm import pace
from isthmus.kubelet.slurm.feed import Feed
from isthmus.model.pod_job import Job, JobState, SlurmJob
from isthmus.support.threads import Threads

# Between any two questions.
_GAP_S = 0.5
_GONE_AFTER_S = 60.0
# A job that the feed does not show, though it is older than what was asked by so much, for so long.
_OLDER_S, _DOUBT_S = 1.0, 3.0
# What is due so soon is due.
_SOON_S = 0.01
# More at once only make slurmctld slower.
_SUBMISSIONS = 4

_log = logging.getLogger(__name__)
Notify = Callable[[SlurmJob], None]
_Answer = TypeVar("_Answer")


class Slurm(Protocol):
    """What is asked of Slurm; isthmus.clients.slurm.pod_jobs says what each does. All of them block."""

    def submit(self, options: Iterable[str], script: str) -> str:
        """Submit a batch script; return the job's id."""

    def queue(self) -> list[Found]:
        """Return the user's jobs."""

    def accounted(self, jobs: Iterable[str]) -> list[SlurmJob]:
        """Return jobs that have left the queue."""

    def cancel(self, jobs: Collection[str]) -> None:
        """End jobs."""


@dataclass(slots=True)
class _Watched:
    """A pod's job."""

    number: str
    notify: Notify
    since_s: float
    known: SlurmJob | None = None
    missing_since_s: float | None = None
    doubted_since_s: float | None = None


class Jobs:
    """All jobs of all pods, by the pods' UIDs.

    Args:
        slurm: is asked.
        busy_s: seconds between two rounds while something changes.
        clock: seconds that never go back.
        feed: has the jobs, so that Slurm need not be asked; None where there is none.
        chance: a number from 0 to 1, by which kubelets that began in the same moment drift apart.
    """

    def __init__(
        self,
        slurm: Slurm,
        busy_s: float = pace.BUSY_S,
        clock: Callable[[], float] = time.monotonic,
        feed: Feed | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._slurm = slurm
        self._busy_s = busy_s
        self._clock = clock
        self._feed, self._chance = feed, chance
        self._own_s = self._confirmed_s = float("-inf")
        self._attended: set[str] = set()
        self._watched: dict[str, _Watched] = {}
        self._submitted: dict[str, str] = {}
        self._comments: dict[str, list[SlurmJob]] = {}
        self._rounds = asyncio.Condition()
        self._round = 0
        self._waiting = 0
        self._changed_s = clock()
        self._hurry = asyncio.Event()
        self._submissions, self._questions = Threads("sbatch", _SUBMISSIONS), Threads("squeue", 1)
        self._ends = Threads("scancel", 1)
        self._unwanted: set[str] = set()
        self._cancelling, self._asking = asyncio.Lock(), asyncio.Lock()

    def stop(self) -> None:
        """Ask nothing more."""
        for threads in (self._submissions, self._questions, self._ends):
            threads.stop()

    async def run(self) -> None:
        """Ask, round after round; where there is a feed only what it does not say by itself."""
        self._hurry.set()
        while True:
            await self._hold()
            hurried = self._hurry.is_set()
            self._hurry.clear()
            if (self._watched or self._waiting) and (hurried or not self._is_fed or self._is_doubt_due()):
                await self.round()
            await self._rest()

    async def _hold(self) -> None:
        """Wait for a feed that may come back in a moment."""
        while self._feed and (hold_s := self._feed.hold_s()) > 0:
            self._feed.changed.clear()
            await _within(hold_s, self._feed.changed)

    async def _rest(self) -> None:
        """Wait until the next round is due, and take meanwhile what the feed says."""
        pause_s = self.pause_s()
        if not (self._feed and self._is_fed):
            # Those that lost their feed in the same moment ask at different ones.
            await _within(pause_s * (1 + pace.SPREAD * self._chance()), self._hurry)
            return
        self._feed.want(pause_s)
        until_s = self._clock() + self._until_doubt_s(pause_s)
        while self._is_fed and not self._hurry.is_set() and (left_s := until_s - self._clock()) > _SOON_S:
            self._feed.changed.clear()
            await _within(left_s, self._feed.changed, self._hurry)
            if self._is_fed and self._feed.viewed_s >= self._own_s:
                self._take_fed(dict(self._watched), self._feed)
                until_s = min(until_s, self._clock() + self._until_doubt_s(pause_s))

    @property
    def _is_fed(self) -> bool:
        return self._feed is not None and self._feed.usable()

    def _is_doubt_due(self) -> bool:
        """Whether Slurm itself has to say what became of a job that the feed does not show."""
        return self._until_doubt_s(1.0) <= _SOON_S

    def _until_doubt_s(self, most_s: float) -> float:
        doubted = [one.doubted_since_s for one in self._watched.values() if one.doubted_since_s is not None]
        if not doubted:
            return most_s
        return min(most_s, max(min(doubted) + _DOUBT_S, self._confirmed_s) - self._clock())

    def quiet_s(self) -> float:
        """Return for how long no job has changed, and none was expected to."""
        return self._clock() - self._changed_s

    def pause_s(self) -> float:
        """Return how long to wait until the next round."""
        if self._waiting:
            return self._busy_s
        if any(one.missing_since_s is not None for one in self._watched.values()):
            # Seen again or gone, that is known in a minute.
            return max(self._busy_s, pace.IDLE_S)
        return pace.jobs_s(self.quiet_s(), self._busy_s, attended=self._watched.keys() <= self._attended)

    def attend(self, uid: str) -> None:
        """Note that a pod's supervisor is there: what happens to its job need not be asked for."""
        self._attended.add(uid)

    def unattend(self, uid: str) -> None:
        """Note that a pod's supervisor has gone; Slurm says why, soon."""
        self._attended.discard(uid)
        self.hurry()

    async def submit(self, job: Job, script: str) -> str:
        """Submit a pod's job; return its id.

        Raises:
            RefusedError: Slurm said no.
            NoAnswerError: look with `find` before the next try.
        """
        COUNTS["submissions"] += 1
        number = await self._submissions.call(self._slurm.submit, job.options, script)
        self._submitted[job.uid] = number
        self._changed_s = self._clock()
        return number

    async def find(self, uid: str) -> SlurmJob | None:
        """Return the job that bears a pod's UID, the oldest that lives of several; None when Slurm has none.

        Waits for a round that begins from now on, however long Slurm does not answer.
        """
        self._waiting += 1
        try:
            async with self._rounds:
                # One that is under way may have asked before.
                wanted = self._round + 2 if self._asking.locked() else self._round + 1
                self._hurry.set()
                await self._rounds.wait_for(lambda: self._round >= wanted)
        finally:
            self._waiting -= 1
        found = sorted(self._comments.get(uid, ()), key=lambda job: (job.state.ended, int(job.id)))
        return found[0] if found else None

    def watch(self, uid: str, number: str, notify: Notify) -> None:
        """Tell of every change of a pod's job, and at once what is known."""
        before = self._watched.get(uid)
        known = before.known if before and before.number == number else None
        self._watched[uid] = _Watched(number, notify, self._clock(), known)
        self._changed_s = self._clock()
        if known:
            notify(known)
        self._hurry.set()

    def forget(self, uid: str) -> None:
        """Tell no more of a pod's job."""
        self._watched.pop(uid, None)
        self._submitted.pop(uid, None)
        self._attended.discard(uid)

    def others(self, uid: str, job: str) -> list[str]:
        """Return jobs of a pod that live beside the one it should have."""
        return [one.id for one in self._comments.get(uid, ()) if one.id != job and not one.state.ended]

    async def cancel(self, uid: str, job: str) -> None:
        """End a pod's job. If Slurm cannot be asked, or has not said that it is the pod's, the caller tries again."""
        if self._submitted.get(uid) != job and all(one.id != job for one in self._comments.get(uid, ())):
            self.hurry()
            return
        self._unwanted.add(job)
        async with self._cancelling:
            if job not in self._unwanted:
                return
            batch, self._unwanted = self._unwanted, set()
            COUNTS["cancellations"] += 1
            try:
                await self._ends.call(self._slurm.cancel, sorted(batch, key=int))
            except SlurmError as error:
                _log.warning("not all of these jobs are cancelled: %s: %s", ", ".join(sorted(batch, key=int)), error)
        self.hurry()

    def hurry(self) -> None:
        """Have the next rounds come soon: something is expected to change."""
        self._changed_s = self._clock()
        self._hurry.set()

    async def round(self) -> None:
        """Ask once, and tell what changed."""
        watched = dict(self._watched)
        async with self._asking:
            try:
                if self._feed and self._is_fed and not self._is_doubt_due():
                    await self._feed.answer()
                    self._take_fed(watched, self._feed)
                    await asyncio.sleep(min(_GAP_S, self._busy_s))
                else:
                    await self._ask(watched)
            except (SlurmError, FeedError) as error:
                _log.warning("nothing is known of any job now: %s", error)
                return
        async with self._rounds:
            self._round += 1
            self._rounds.notify_all()

    async def _ask(self, watched: dict[str, _Watched]) -> None:
        """Ask Slurm itself.

        Raises:
            SlurmError: it did not say which jobs there are.
        """
        self._own_s = self._clock()
        self._confirmed_s = self._own_s + pace.CONFIRM_S * (0.75 + self._chance() / 2)
        found = await self._call(self._slurm.queue)
        queued = {one.job.id: one for one in found}
        missing = sorted({one.number for one in watched.values()} - queued.keys(), key=int)
        accounted = await self._accounted(missing) if missing else {}
        self._know(found)
        for uid, pod in watched.items():
            if self._watched.get(uid) is not pod:
                continue
            if (holder := queued.get(pod.number)) and holder.comment != uid:
                self._change(pod, SlurmJob(pod.number, JobState.GONE))
            elif holder or accounted is not None:
                self._tell(pod, holder.job if holder else (accounted or {}).get(pod.number))
            if self._feed and holder and holder.comment == uid and self._is_doubted(pod):
                self._feed.distrust(f"it does not show job {pod.number}, which Slurm has")
                self._trust_all()
        self._tell_doubled()

    def _take_fed(self, watched: dict[str, _Watched], feed: Feed) -> None:
        """Take what the feed says; what it does not say is to be asked for."""
        found = feed.jobs()
        queued = {one.job.id: one for one in found}
        self._know(found)
        for uid, pod in watched.items():
            if self._watched.get(uid) is not pod:
                continue
            holder = queued.get(pod.number)
            if holder and holder.comment == uid:
                pod.doubted_since_s = None
                self._tell(pod, holder.job)
            elif pod.doubted_since_s is None and feed.viewed_s > pod.since_s + _OLDER_S:
                is_ended = pod.known is not None and pod.known.state.ended
                pod.doubted_since_s = None if is_ended else self._clock()
        self._tell_doubled()

    def _is_doubted(self, pod: _Watched) -> bool:
        return pod.doubted_since_s is not None and self._own_s - pod.doubted_since_s >= _DOUBT_S

    def _trust_all(self) -> None:
        for pod in self._watched.values():
            pod.doubted_since_s = None

    def _know(self, found: list[Found]) -> None:
        self._comments = {}
        for one in found:
            self._comments.setdefault(one.comment, []).append(one.job)

    async def _accounted(self, missing: list[str]) -> dict[str, SlurmJob] | None:
        """Return what accounting knows; None when it did not answer. Where there is none, it knows nothing."""
        try:
            return {job.id: job for job in await self._call(lambda: self._slurm.accounted(missing))}
        except RefusedError as error:
            _log.warning("accounting knows no job: %s", error)
            return {}
        except SlurmError as error:
            _log.warning("nothing is known of jobs that have left the queue: %s", error)
            return None

    def _tell(self, pod: _Watched, job: SlurmJob | None) -> None:
        if job is None:
            if pod.missing_since_s is None:
                pod.missing_since_s = self._clock()
            if self._clock() - pod.missing_since_s < _GONE_AFTER_S:
                return
            job = SlurmJob(pod.number, JobState.GONE)
        else:
            pod.missing_since_s = None
        self._change(pod, job)

    def _change(self, pod: _Watched, job: SlurmJob) -> None:
        if job.state.ended:
            pod.doubted_since_s = None
        if pod.known != job:
            pod.known = job
            self._changed_s = self._clock()
            pod.notify(job)

    def _tell_doubled(self) -> None:
        """Have pods look that have a job too many."""
        for uid, jobs in self._comments.items():
            living = [job for job in jobs if not job.state.ended]
            if len(living) > 1 and (pod := self._watched.get(uid)):
                for job in living:
                    if job.id == pod.number:
                        pod.notify(job)

    async def _call(self, question: Callable[[], list[_Answer]]) -> list[_Answer]:
        COUNTS["slurm_questions"] += 1
        answer = await self._questions.call(question)
        await asyncio.sleep(min(_GAP_S, self._busy_s))
        return answer


async def _within(pause_s: float, *events: asyncio.Event) -> None:
    """Wait for one of events, or for some seconds."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
