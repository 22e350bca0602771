"""A Slurm of one user with room for every job: strict, in memory, asked from threads as the real client is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from isthmus.clients.slurm.pod_jobs import Found, NoAnswerError, RefusedError
from isthmus.model.pod_job import JobState, SlurmJob
from isthmus.model.slurm.cluster import NodeRoom, Partition, SlurmCluster, SlurmNode

OFFER = SlurmCluster(
    nodes=(SlurmNode("c1", 32, 8192), SlurmNode("c2", 32, 8192)),
    partitions=(Partition("main", frozenset({"c1", "c2"})),),
)
KNOWN: tuple[str, ...] = (
    "--job-name=",
    "--comment=",
    "--extra=",
    "--output=",
    "--export=",
    "--no-requeue",
    "--chdir=",
    "--cpus-per-task=",
)
KNOWN += ("--mem=", "--time=", "--nodelist=", "--exclude=", "--pod-network=", "--signal=")


class FakeSlurm:
    """Jobs start at once, unless `full`.

    Attributes:
        silent: nothing is answered.
        drops_answer: submissions are done, but not answered.
        refusal: what sbatch says instead of submitting.
        full: jobs wait.
        free: CPUs that sinfo says are free of each node's 32.
        started: is notified of each job that starts, and its comment.
        cancelled: called with each running job that is cancelled.
    """

    def __init__(self) -> None:
        self.silent = self.drops_answer = self.full = False
        self.refusal = ""
        self.jobs: dict[str, Found] = {}
        self.submissions: list[tuple[str, ...]] = []
        self.cancellations: list[list[str]] = []
        self.questions = 0
        self.free = {"c1": 32, "c2": 32}
        self.started: Callable[[str, str], None] = lambda job, comment: None
        self.cancelled: Callable[[str], None] = self.end
        self._lock = threading.RLock()

    def submit(self, options: Iterable[str], script: str) -> str:
        """Take a job as sbatch does."""
        words = tuple(options)
        unknown = [word for word in words if not word.startswith(KNOWN)]
        assert not unknown, unknown
        assert script.startswith("#!/bin/sh\n")
        self._answer()
        if self.refusal:
            raise RefusedError(self.refusal)
        with self._lock:
            number = str(len(self.submissions) + 1)
            self.submissions.append(words)
            comment = next(word.partition("=")[2] for word in words if word.startswith("--comment="))
            self.jobs[number] = Found(SlurmJob(number, JobState.PENDING, "Resources"), comment)
            if not self.full:
                self.start(number)
        if self.drops_answer:
            self.drops_answer = False
            raise NoAnswerError("Slurm does not answer: sbatch: error: Socket timed out")
        return number

    def queue(self) -> list[Found]:
        """Answer as squeue does."""
        self.questions += 1
        self._answer()
        with self._lock:
            return [*self.jobs.values()]

    def rooms(self, partition: str) -> list[NodeRoom]:
        """Answer as sinfo does for one partition."""
        assert partition == ""
        self._answer()
        return [NodeRoom(name, free, 8192, 32, 8192) for name, free in self.free.items()]

    def accounted(self, jobs: Iterable[str]) -> list[SlurmJob]:
        """Answer as sacct does: what has left the queue is known here no more."""
        self._answer()
        return []

    def cancel(self, jobs: Collection[str]) -> None:
        """End jobs as scancel does."""
        self._answer()
        self.cancellations.append(list(jobs))
        for job in jobs:
            state = self.jobs[job].job.state
            if state.waiting:
                self.end(job, JobState.CANCELLED)
            elif not state.ended:
                self.cancelled(job)

    def start(self, number: str) -> None:
        """Give a job its node."""
        self._set(number, state=JobState.RUNNING, reason="", nodes="c1", started=_now())
        self.started(number, self.jobs[number].comment)

    def end(self, number: str, state: JobState = JobState.COMPLETED) -> None:
        """End a job."""
        self._set(number, state=state, ended=_now())

    def of(self, uid: str) -> list[SlurmJob]:
        """Return the jobs of a pod."""
        return [found.job for found in self.jobs.values() if found.comment == uid]

    def _set(self, number: str, **changes: object) -> None:
        with self._lock:
            found = self.jobs[number]
            self.jobs[number] = Found(replace(found.job, **changes), found.comment)  # type: ignore[arg-type]

    def _answer(self) -> None:
        if self.silent:
            raise NoAnswerError("Slurm does not answer")


def _now() -> datetime:
    """Return the time as Slurm prints it."""
    return datetime.now(UTC).replace(microsecond=0)
