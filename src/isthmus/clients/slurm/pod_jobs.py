"""Pods' Slurm jobs: submit one, list all in one call, cancel.

Slurm has three answers: yes, no, and none. None is an error of its own, because a job whose submission was not
answered may exist, and a job nobody could ask for may run.

Who asks is a job itself. What Slurm set for it, and what its user chose for it, is kept from Slurm's commands: it would
reach the pods' jobs.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm import commands as slurm
from isthmus.clients.slurm.commands import SlurmError
from isthmus.model.pod_job import JobState, SlurmJob

# Slurm's own limit for a message is 10 s (MessageTimeout); its commands try several times.
TIMEOUT_S = 60.0
# Times as seconds since the epoch: the cluster's time zone does not matter.
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s"}
# In the order of `found`.
FIELDS = ("%A", "%T", "%N", "%S", "%e", "%r", "%k")
_SACCT = ("JobIDRaw", "State", "NodeList", "Start", "End", "Reason", "ExitCode")
_BAR = "|"
# slurm_strerror(3): words for what says nothing about the job.
_NO_ANSWER = (
    "unable to contact",
    "socket timed out",
    "connection refused",
    "connection timed out",
    "zero bytes were transmitted",
    "in standby mode",
    "resource temporarily unavailable",
    "slurmctld is not responding",
    "communication",
)
_log = logging.getLogger(__name__)
_UNKNOWN_JOB = ("invalid job id", "job/step already completing or completed")


class NoAnswerError(SlurmError):
    """Slurm did not answer; nothing is known about any job."""


class RefusedError(SlurmError):
    """Slurm refused; the message says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """A job of this user.

    Attributes:
        job: what Slurm says.
        comment: the pod's UID; something else for jobs that are no pods.
    """

    job: SlurmJob
    comment: str


class PodJobs:
    """The user's jobs.

    Args:
        prefix: where Slurm is installed.
    """

    def __init__(self, prefix: Path = Path("/usr")) -> None:
        self._bin = prefix / "bin"

    def submit(self, options: Iterable[str], script: str) -> str:
        """Submit a batch script; return the job's id.

        Raises:
            RefusedError: there is no such job.
            NoAnswerError: there may be one.
        """
        return slurm.job_id(self._run("sbatch", "--parsable", *options, script=script))

    def queue(self) -> list[Found]:
        """Return the user's jobs, with those that ended in the last minutes.

        Raises:
            SlurmError: no answer, or none that can be read.
        """
        form = slurm.Form(FIELDS)
        return found(form.rows(self._run("squeue", *form.words, *slurm.own())))

    def accounted(self, jobs: Iterable[str]) -> list[SlurmJob]:
        """Return what accounting knows of jobs that have left the queue.

        Raises:
            SlurmError: no answer, or none that can be read.
        """
        words = ("--noheader", "--parsable2", "--allocations", f"--format={','.join(_SACCT)}")
        output = self._run("sacct", *words, f"--jobs={','.join(jobs)}")
        return [_accounted(line) for line in output.splitlines() if line.strip()]

    def cancel(self, jobs: Collection[str]) -> None:
        """End jobs, as their supervisors expect it: SIGTERM, and SIGKILL later; those that have ended are fine.

        Raises:
            SlurmError: Slurm did not take all of them.
        """
        try:
            self._run("scancel", *jobs)
        except RefusedError as error:
            output = str(error).lower().split("; ")
            if not all(any(sign in line for sign in _UNKNOWN_JOB) for line in output):
                raise

    def _run(self, program: str, *words: str, script: str | None = None) -> str:
        try:
            argv = [str(self._bin / program), *words]
            own = slurm.options_among(os.environ)
            return run(argv, timeout_s=TIMEOUT_S, environment=ENVIRONMENT, without=own, input_text=script).stdout
        except ProcessError as error:
            text = error.stderr.lower()
            if error.status is None or any(sign in text for sign in _NO_ANSWER):
                raise NoAnswerError(f"Slurm does not answer: {error}") from error
            raise RefusedError(_words(error)) from error


def found(rows: Iterable[Sequence[str]]) -> list[Found]:
    """Read rows of squeue, of `FIELDS`; one that cannot be a job is left out."""
    read = []
    for row in rows:
        if len(row) == len(FIELDS) and row[0].isdecimal():
            read.append(_queued(*row))
        else:
            _log.warning("squeue has a job without a number, which is left out: %.200r", row)
    return read


def _queued(number: str, state: str, nodes: str, start: str, end: str, reason: str, comment: str) -> Found:
    known = _state(state)
    if known is JobState.UNKNOWN:
        reason = state
    job = SlurmJob(
        id=number,
        state=known,
        reason="" if reason in ("None", "(null)") else reason,
        nodes="" if nodes == "(null)" else nodes,
        started=None if known.waiting else _time(start),
        ended=_time(end) if known.ended else None,
    )
    return Found(job, comment)


def _accounted(line: str) -> SlurmJob:
    parts = line.split(_BAR)
    if not parts[0].isdecimal():
        raise SlurmError(f"sacct's answer is no list of jobs: {line[:200]!r}")
    if len(parts) != len(_SACCT):
        return SlurmJob(parts[0], JobState.UNKNOWN)
    number, state, nodes, start, end, reason, code = parts
    word, _, rest = state.partition(" ")
    known = _state(word)
    exit_code, _, signal = code.partition(":")
    return SlurmJob(
        id=number,
        state=known,
        # Of an ended job accounting keeps why it once waited, which is no reason of its end.
        reason="" if known.ended or reason == "None" else reason,
        nodes="" if nodes == "None assigned" else nodes,
        exit_code=int(exit_code) if known.ended and exit_code.isdecimal() else None,
        signal=int(signal) if signal.isdecimal() else 0,
        started=_time(start),
        ended=_time(end) if known.ended else None,
        user=rest.removeprefix("by "),
    )


def _state(word: str) -> JobState:
    """Return a state; words of a newer Slurm, of whichever job, must not hide what is said of the others."""
    try:
        return JobState(word)
    except ValueError:
        return JobState.UNKNOWN


def _time(text: str) -> datetime | None:
    return datetime.fromtimestamp(int(text), UTC) if text.isdecimal() and int(text) <= time.time() + 1 else None


def _words(error: ProcessError) -> str:
    """Return what Slurm said, without the names of its programs."""
    lines = [line.partition("error: ")[2] or line for line in error.stderr.strip().splitlines()]
    return "; ".join(line.strip() for line in lines) or str(error)
