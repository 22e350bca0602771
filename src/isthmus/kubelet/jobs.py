"""What Slurm knows of the pods' jobs, asked for all at once, and the way of a pod to its one job.

A round is one squeue, and one sacct when a job has left the queue. No answer leaves everything as it was. A job is
GONE only when both have answered, several times over a minute, and neither knows it: accounting may be late. A job is
a pod's when its comment says so: a Slurm that has lost its state, or had MaxJobId jobs, gives ids out again. Only such
jobs are ended. Those that shall end while a scancel is under way are ended by the next one, all at once. Submissions,
questions and scancel have threads of their own: each may wait a minute for slurmctld. `pace` says how long to wait
between two rounds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from isthmus.clients.pod_jobs import Found, RefusedError
from isthmus.clients.slurm import SlurmError
from isthmus.kubelet import pace
from isthmus.kubelet.stats import COUNTS
from isthmus.model.pod_job import Job, JobState, SlurmJob
from isthmus.support.threads import Threads

# Between any two questions.
_GAP_S = 0.5
_GONE_AFTER_S = 60.0
# More at once only make slurmctld slower.
_SUBMISSIONS = 4

_log = logging.getLogger(__name__)
Notify = Callable[[SlurmJob], None]
_Answer = TypeVar("_Answer")


class Slurm(Protocol):
    """What is asked of Slurm; isthmus.clients.pod_jobs says what each does. All of them block."""

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
    known: SlurmJob | None = None
    missing_since_s: float | None = None


class Jobs:
    """All jobs of all pods, by the pods' UIDs.

    Args:
        slurm: is asked.
        busy_s: seconds between two rounds while something changes.
        clock: seconds that never go back.
    """

    def __init__(self, slurm: Slurm, busy_s: float = pace.BUSY_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._slurm = slurm
        self._busy_s = busy_s
        self._clock = clock
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
        """Ask, round after round."""
        while True:
            if self._watched or self._waiting:
                await self.round()
            try:
                async with asyncio.timeout(self.pause_s()):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()

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
        self._watched[uid] = _Watched(number, notify, known)
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
                found = await self._call(self._slurm.queue)
            except SlurmError as error:
                _log.warning("nothing is known of any job now: %s", error)
                return
            queued = {one.job.id: one for one in found}
            missing = sorted({one.number for one in watched.values()} - queued.keys(), key=int)
            accounted = await self._accounted(missing) if missing else {}
        self._comments = {}
        for one in found:
            self._comments.setdefault(one.comment, []).append(one.job)
        for uid, pod in watched.items():
            if self._watched.get(uid) is not pod:
                continue
            if (holder := queued.get(pod.number)) and holder.comment != uid:
                self._change(pod, SlurmJob(pod.number, JobState.GONE))
            elif holder or accounted is not None:
                self._tell(pod, holder.job if holder else (accounted or {}).get(pod.number))
        self._tell_doubled()
        async with self._rounds:
            self._round += 1
            self._rounds.notify_all()

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
