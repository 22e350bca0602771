"""What Slurm knows, asked by its own commands: one call for all jobs, and no answer is never "gone"."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients.process import ProcessError, run

# squeue(1), JOB STATE CODES: the states in which a job holds its nodes, or its epilog may still run there.
_HOLDING = "RUNNING,COMPLETING,CONFIGURING,SUSPENDED,STOPPED,RESIZING,SIGNALING,STAGE_OUT"
# sbatch(1): read as options, or handed on to the new job as if they were its own; SLURM_CONF only says where Slurm is.
_OF_A_JOB = ("SLURM_", "SBATCH_", "SPANK_", "_SLURM_SPANK_", "ISTHMUS_RESERVATION")
_OF_A_SITE = ("SLURM_CONF", "SLURM_CONF_SERVER")


class SlurmError(Exception):
    """Slurm did not answer, or not as expected; nothing is known about any job."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A job that holds nodes.

    Attributes:
        uid: whose it is.
        name: the job's name, any text but line breaks.
    """

    uid: int
    name: str


def outside_of_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those of the job that this program runs in, for jobs that are no part of it."""
    if "SLURM_JOB_ID" not in environment:
        return dict(environment)
    return {name: value for name, value in environment.items() if name in _OF_A_SITE or not name.startswith(_OF_A_JOB)}


def jobs_on_nodes(prefix: Path = Path("/usr"), timeout_s: float = 10) -> Mapping[int, Holding]:
    """Return all jobs that hold nodes, by id; each array task and each heterogeneous component has its own.

    Args:
        prefix: where Slurm is installed.
        timeout_s: after this slurmctld counts as not answering.

    Raises:
        SlurmError: no answer.
    """
    # A name may have line breaks, and a user choose it: only what begins so is squeue's own line.
    mark = secrets.token_hex(8)
    command: list[str | Path] = [
        *(prefix / "bin/squeue", "--noheader", "--states", _HOLDING),
        *("--format", f"{mark} %A %U %j"),
    ]
    try:
        told = run(command, timeout_s=timeout_s).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say which jobs run: {error}") from error
    found = re.findall(rf"^{mark} (\d+) (\d+) (.*)$", told, re.MULTILINE)
    if len(found) != told.count(f"{mark} "):
        raise SlurmError(f"squeue's answer is no list of jobs: {told[:200]!r}")
    return {int(job): Holding(int(uid), name) for job, uid, name in found}
