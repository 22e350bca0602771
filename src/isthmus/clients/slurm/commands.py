"""Runs Slurm's commands: one call for all jobs, and a missing answer never means "gone".

squeue writes names and comments as users chose them, line breaks and any separator too. So all its fields stand
between marks that nobody can know before; what it says is read here and nowhere else.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.clients.process import ProcessError, run

# squeue(1), JOB STATE CODES: the states in which a job holds its nodes, or its epilog may still run there.
_HOLDING = "RUNNING,COMPLETING,CONFIGURING,SUSPENDED,STOPPED,RESIZING,SIGNALING,STAGE_OUT"
# Sections INPUT ENVIRONMENT VARIABLES of their manual pages; options of plugins; and what our own plugin reads.
# SLURM_CLUSTERS is one: control planes and pod networks are of the cluster whose configuration is found.
_COMMANDS = ("SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_")
_OPTIONS = (*_COMMANDS, "SPANK_", "_SLURM_SPANK_", "ISTHMUS_RESERVATION")
# How slurmctld is found, and how callers are authenticated.
_WAYS = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_SACK_SOCKET", "SLURM_SACK_KEY")
# Where a user's jobs go and who pays. Others would make it another job (SBATCH_ARRAY_INX), or never end (SBATCH_WAIT).
_REQUESTS = frozenset(f"SBATCH_{name}" for name in ("ACCOUNT", "CONSTRAINT", "PARTITION", "QOS", "RESERVATION"))
_REQUESTS |= {"SBATCH_TIMELIMIT", "SBATCH_WCKEY"}


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


@dataclass(frozen=True, slots=True)
class Form:
    """Asks squeue for fields of jobs, and reads its answer.

    Attributes:
        fields: as in squeue(1), --format.
        mark: stands before, between and after the fields of each job.
    """

    fields: tuple[str, ...]
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def words(self) -> tuple[str, ...]:
        """The options that make squeue answer in this form, of jobs in hidden partitions too."""
        return "--all", "--noheader", f"--format={self.mark}{self.mark.join(self.fields)}{self.mark}"

    def rows(self, output: str) -> list[list[str]]:
        """Return the fields of each job, as squeue writes them.

        Raises:
            SlurmError: the answer is no list of jobs.
        """
        first, *parts = output.split(self.mark)
        width = len(self.fields) + 1
        rows = [parts[begin : begin + width] for begin in range(0, len(parts), width)]
        if first or any(len(row) != width or row[-1] != "\n" for row in rows):
            raise SlurmError(f"squeue's answer is no list of jobs: {output[:200]!r}")
        return [row[:-1] for row in rows]


def jobs_on_nodes(prefix: Path = Path("/usr"), timeout_s: float = 10) -> Mapping[int, Holding]:
    """Return all jobs that hold nodes, by id; each array task and each heterogeneous component has its own.

    Args:
        prefix: where Slurm is installed.
        timeout_s: after this slurmctld counts as not answering.

    Raises:
        SlurmError: no answer.
    """
    form = Form(("%A", "%U", "%j"))
    try:
        argv = [str(prefix / "bin/squeue"), *form.words, f"--states={_HOLDING}"]
        output = run(argv, timeout_s=timeout_s, without=options_among(os.environ)).stdout
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say which jobs run: {error}") from error
    rows = form.rows(output)
    if wrong := [row for row in rows if not (row[0].isdecimal() and row[1].isdecimal())]:
        raise SlurmError(f"squeue's answer is no list of jobs: {wrong[0]!r}")
    return {int(job): Holding(int(uid), name.partition("\n")[0]) for job, uid, name in rows}


def options_among(names: Iterable[str]) -> frozenset[str]:
    """Return those environment variables that are options of Slurm's commands: a job's own, or its user's choice.

    None of them may reach a command whose options say all: a job would get what is another's, or not be listed.
    """
    return frozenset(name for name in names if name.startswith(_OPTIONS) and name not in _WAYS)


def options_but_requests_among(names: Iterable[str]) -> frozenset[str]:
    """Return the options that must not reach a job of the user's own: all but where it goes and who pays."""
    return options_among(names) - _REQUESTS


def own() -> tuple[str, ...]:
    """Return squeue's options for the caller's jobs, with those that ended in the last minutes."""
    return f"--user={os.getuid()}", "--states=all"


def job_id(output: str) -> str:
    """Return the id that sbatch --parsable prints; in a federation the cluster's name follows."""
    return output.strip().partition(";")[0]
