"""The observed state of the pods' jobs, polled for all at once; submission, adoption and cancellation of jobs.

A poll is one squeue, and one sacct when a job has left the queue. Without an answer nothing changes. A job is
GONE only when both have answered, several times over a minute, and neither knows it: accounting may lag. A job belongs
to a pod by its comment, not its id: after a loss of state, or after MaxJobId jobs, Slurm reuses ids. Only such
jobs are cancelled. Cancellations during a running scancel are batched into the next one. Submissions,
queries and scancel have separate threads: each may wait a minute for slurmctld. `pace` gives the time
between two polls.

isthmus-jobsd (`feed`), where configured, polls for all kubelets and pushes changes; a poll then requests a fresh answer
from it. A job missing in its view is only suspected gone: Slurm itself is asked before the kubelet acts on it.
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
from isthmus.kubelet import metrics
from isthmus.kubelet.slurm import pace
from isthmus.kubelet.slurm.feed import Feed
from isthmus.model.pod_job import Job, JobState, SlurmJob
from isthmus.support.threads import Threads

# Between any two queries.
_GAP_S = 0.5
_GONE_AFTER_S = 60.0
# How much older than the view, and for how long missing from it, a job must be to be suspected gone.
_OLDER_S, _DOUBT_S = 1.0, 3.0
# What is due so soon is due.
_SOON_S = 0.01
# More concurrent submissions only slow slurmctld down.
_SUBMISSIONS = 4

_log = logging.getLogger(__name__)
Notify = Callable[[SlurmJob], None]
_Answer = TypeVar("_Answer")


class Slurm(Protocol):
    """Slurm's commands, see isthmus.clients.slurm.pod_jobs. All of them block."""

    def submit(self, options: Iterable[str], script: str) -> str:
        """Submit a batch script; return the job's id."""

    def queue(self) -> list[Found]:
        """Return the user's jobs."""

    def accounted(self, jobs: Iterable[str]) -> list[SlurmJob]:
        """Return jobs that have left the queue."""

    def cancel(self, jobs: Collection[str]) -> None:
        """Cancel jobs."""


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
        slurm: Slurm's commands.
        busy_s: seconds between two polls while something changes.
        clock: monotonic seconds.
        feed: provides jobs from isthmus-jobsd; None if it is not configured.
        chance: a number from 0 to 1, for the jitter that spreads kubelets started at the same moment.
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
        """Stop polling."""
        for threads in (self._submissions, self._questions, self._ends):
            threads.stop()

    async def run(self) -> None:
        """Poll for ever; with a feed only for what it does not push."""
        self._hurry.set()
        while True:
            await self._hold()
            hurried = self._hurry.is_set()
            self._hurry.clear()
            if (self._watched or self._waiting) and (hurried or not self._is_fed or self._is_doubt_due()):
                await self.round()
            await self._rest()

    async def _hold(self) -> None:
        """Wait for a feed that may reconnect in a moment."""
        while self._feed and (hold_s := self._feed.hold_s()) > 0:
            self._feed.changed.clear()
            await _within(hold_s, self._feed.changed)

    async def _rest(self) -> None:
        """Wait until the next poll is due, and observe the feed meanwhile."""
        pause_s = self.pause_s()
        if not (self._feed and self._is_fed):
            # Jitter: all kubelets lose the feed in the same moment.
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
        """Whether Slurm must be polled for a job that the feed does not show."""
        return self._until_doubt_s(1.0) <= _SOON_S

    def _until_doubt_s(self, most_s: float) -> float:
        doubted = [one.doubted_since_s for one in self._watched.values() if one.doubted_since_s is not None]
        if not doubted:
            return most_s
        return min(most_s, max(min(doubted) + _DOUBT_S, self._confirmed_s) - self._clock())

    def quiet_s(self) -> float:
        """Return the time since a job changed or was expected to change."""
        return self._clock() - self._changed_s

    def pause_s(self) -> float:
        """Return the time until the next poll."""
        if self._waiting:
            return self._busy_s
        if any(one.missing_since_s is not None for one in self._watched.values()):
            # Seen again or gone, that is known in a minute.
            return max(self._busy_s, pace.IDLE_S)
        return pace.jobs_s(self.quiet_s(), self._busy_s, attended=self._watched.keys() <= self._attended)

    def attend(self, uid: str) -> None:
        """Note that a pod's supervisor is connected: its job need not be polled often."""
        self._attended.add(uid)

    def unattend(self, uid: str) -> None:
        """Note that a pod's supervisor has disconnected; the next polls come soon."""
        self._attended.discard(uid)
        self.hurry()

    async def submit(self, job: Job, script: str) -> str:
        """Submit a pod's job; return its id.

        Raises:
            RefusedError: Slurm refused the job.
            NoAnswerError: call `find` before the next attempt.
        """
        metrics.SUBMISSIONS.inc()
        with metrics.SBATCH_S.time():
            number = await self._submissions.call(self._slurm.submit, job.options, script)
        self._submitted[job.uid] = number
        self._changed_s = self._clock()
        return number

    async def find(self, uid: str) -> SlurmJob | None:
        """Return the job with a pod's UID in its comment, the oldest living one of several, or None.

        Waits for a poll that starts after this call, however long Slurm does not answer.
        """
        self._waiting += 1
        try:
            async with self._rounds:
                # A running poll may have started earlier.
                wanted = self._round + 2 if self._asking.locked() else self._round + 1
                self._hurry.set()
                await self._rounds.wait_for(lambda: self._round >= wanted)
        finally:
            self._waiting -= 1
        found = sorted(self._comments.get(uid, ()), key=lambda job: (job.state.ended, int(job.id)))
        return found[0] if found else None

    def watch(self, uid: str, number: str, notify: Notify) -> None:
        """Subscribe to changes of a pod's job, starting with the present state."""
        before = self._watched.get(uid)
        known = before.known if before and before.number == number else None
        self._watched[uid] = _Watched(number, notify, self._clock(), known)
        self._changed_s = self._clock()
        if known:
            notify(known)
        self._hurry.set()

    def forget(self, uid: str) -> None:
        """Unsubscribe from a pod's job."""
        self._watched.pop(uid, None)
        self._submitted.pop(uid, None)
        self._attended.discard(uid)

    def others(self, uid: str, job: str) -> list[str]:
        """Return living jobs of a pod other than its own."""
        return [one.id for one in self._comments.get(uid, ()) if one.id != job and not one.state.ended]

    async def cancel(self, uid: str, job: str) -> None:
        """Cancel a pod's job. If Slurm does not answer, or has not confirmed whose it is, the caller retries."""
        if self._submitted.get(uid) != job and all(one.id != job for one in self._comments.get(uid, ())):
            self.hurry()
            return
        self._unwanted.add(job)
        async with self._cancelling:
            if job not in self._unwanted:
                return
            batch, self._unwanted = self._unwanted, set()
            metrics.CANCELLATIONS.inc()
            try:
                await self._ends.call(self._slurm.cancel, sorted(batch, key=int))
            except SlurmError as error:
                _log.warning("not all of these jobs are cancelled: %s: %s", ", ".join(sorted(batch, key=int)), error)
        self.hurry()

    def hurry(self) -> None:
        """Poll soon: a change is expected."""
        self._changed_s = self._clock()
        self._hurry.set()

    async def round(self) -> None:
        """Poll once and notify subscribers of changes."""
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
                _log.warning("the state of jobs is unknown: %s", error)
                return
        async with self._rounds:
            self._round += 1
            self._rounds.notify_all()

    async def _ask(self, watched: dict[str, _Watched]) -> None:
        """Poll Slurm itself.

        Raises:
            SlurmError: squeue failed.
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
                self._notify(pod, holder.job if holder else (accounted or {}).get(pod.number))
            if self._feed and holder and holder.comment == uid and self._is_doubted(pod):
                self._feed.distrust(f"it does not show job {pod.number}, which Slurm has")
                self._trust_all()
        self._report_doubled()

    def _take_fed(self, watched: dict[str, _Watched], feed: Feed) -> None:
        """Observe the feed; jobs it does not show remain to be polled."""
        found = feed.jobs()
        queued = {one.job.id: one for one in found}
        self._know(found)
        for uid, pod in watched.items():
            if self._watched.get(uid) is not pod:
                continue
            holder = queued.get(pod.number)
            if holder and holder.comment == uid:
                pod.doubted_since_s = None
                self._notify(pod, holder.job)
            elif pod.doubted_since_s is None and feed.viewed_s > pod.since_s + _OLDER_S:
                is_ended = pod.known is not None and pod.known.state.ended
                pod.doubted_since_s = None if is_ended else self._clock()
        self._report_doubled()

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
        """Return accounting's jobs; None if it did not answer, empty if there is no accounting."""
        try:
            return {job.id: job for job in await self._call(lambda: self._slurm.accounted(missing))}
        except RefusedError as error:
            _log.warning("accounting is not available: %s", error)
            return {}
        except SlurmError as error:
            _log.warning("the state of jobs that left the queue is unknown: %s", error)
            return None

    def _notify(self, pod: _Watched, job: SlurmJob | None) -> None:
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

    def _report_doubled(self) -> None:
        """Notify pods that have more than one job."""
        for uid, jobs in self._comments.items():
            living = [job for job in jobs if not job.state.ended]
            if len(living) > 1 and (pod := self._watched.get(uid)):
                for job in living:
                    if job.id == pod.number:
                        pod.notify(job)

    async def _call(self, question: Callable[[], list[_Answer]]) -> list[_Answer]:
        metrics.SLURM_QUESTIONS.inc()
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
