"""A user's own jobs: submit, list, cancel; each is one call of Slurm's own commands.

What stands in the user's environment for their own calls is kept from these, but for where jobs go and who pays: an
SQUEUE_PARTITION would hide the control plane, and a second one would be submitted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isthmus.clients.process import ProcessError, run
from isthmus.clients.slurm import commands as slurm
from isthmus.clients.slurm.commands import SlurmError

TIMEOUT_S = 30.0
# squeue(1); in the order of Job.
_FIELDS = ("%i", "%T", "%r", "%N", "%L", "%S", "%j", "%k")
# squeue(1), JOB STATE CODES. A state that is not among them, COMPLETING too, counts as alive.
_ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
_ENDED |= {"PREEMPTED", "REVOKED", "TIMEOUT"}


@dataclass(frozen=True, slots=True)
class Job:
    """One job of squeue.

    Attributes:
        id: Slurm's.
        state: in Slurm's long form, such as RUNNING.
        reason: why it waits, or why it ended.
        node: where it runs, empty while it waits.
        left: of its time, as Slurm writes it.
        start: when it began, or is expected to.
        name: of the job.
        comment: of the job.
    """

    id: str
    state: str
    reason: str
    node: str
    left: str
    start: str
    name: str
    comment: str


def submit(options: Sequence[str], script: str, environment: Mapping[str, str] | None = None) -> str:
    """Submit a batch script; return the job's id.

    Raises:
        ProcessError: Slurm refused; the message says why.
    """
    command = ["sbatch", "--parsable", *options]
    without = slurm.options_but_requests_among(os.environ)
    output = run(command, timeout_s=TIMEOUT_S, environment=environment, without=without, input_text=script)
    return slurm.job_id(output.stdout)


def try_submit(options: Sequence[str], script: str) -> None:
    """Ask whether such a job would be taken; nothing is submitted.

    Raises:
        ProcessError: it would not be, and why.
    """
    without = slurm.options_but_requests_among(os.environ)
    run(["sbatch", "--test-only", *options], timeout_s=TIMEOUT_S, without=without, input_text=script)


def own_jobs() -> list[Job]:
    """Return the caller's jobs that have not ended, or whose epilog may still run.

    Raises:
        SlurmError: no answer.
    """
    form = slurm.Form(_FIELDS)
    try:
        argv = ["squeue", *form.words, *slurm.own()]
        output = run(argv, timeout_s=TIMEOUT_S, without=slurm.options_among(os.environ)).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say which jobs there are: {error}") from error
    jobs = [Job(*row) for row in form.rows(output)]
    return [job for job in jobs if job.state not in _ENDED]


def cancel(jobs: Sequence[str], *, in_order: bool = False) -> None:
    """End jobs; those that have ended already are fine.

    Args:
        jobs: ids.
        in_order: ask the batch script alone, which then ends what it started; else all processes are ended.

    Raises:
        ProcessError: Slurm did not take it.
    """
    if jobs:
        argv = ["scancel", *(["--batch", "--signal=TERM"] if in_order else []), *jobs]
        run(argv, timeout_s=TIMEOUT_S, without=slurm.options_among(os.environ))
