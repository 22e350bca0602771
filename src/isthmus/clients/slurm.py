"""What Slurm knows, asked by its own commands: one call for all jobs, and no answer is never "gone"."""

from __future__ import annotations

from pathlib import Path

from isthmus.clients.process import ProcessError, run

# squeue(1), JOB STATE CODES: the states in which a job holds its nodes, or its epilog may still run there.
_HOLDING = "RUNNING,COMPLETING,CONFIGURING,SUSPENDED,STOPPED,RESIZING,SIGNALING,STAGE_OUT"


class SlurmError(Exception):
    """Slurm did not answer, or not as expected; nothing is known about any job."""


def jobs_on_nodes(prefix: Path = Path("/usr"), timeout_s: float = 10) -> frozenset[int]:
    """Return the ids of all jobs that hold nodes; each array task and each heterogeneous component has its own.

    Args:
        prefix: where Slurm is installed.
        timeout_s: after this slurmctld counts as not answering.

    Raises:
        SlurmError: no answer.
    """
    command: list[str | Path] = [prefix / "bin/squeue", "--noheader", "--states", _HOLDING, "--format", "%A"]
    try:
        told = run(command, timeout_s=timeout_s).stdout.split()
        return frozenset(map(int, told))
    except ProcessError as error:
        raise SlurmError(f"slurmctld did not say which jobs run: {error}") from error
    except ValueError as error:
        raise SlurmError(f"squeue's answer is no list of job ids: {error}") from error
