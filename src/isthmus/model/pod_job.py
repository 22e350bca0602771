"""A pod's Slurm job: its submission, and its observed state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Job:
    """A job to submit.

    Submit it with `sbatch --parsable OPTIONS...` and the script on standard input.

    Attributes:
        uid: of the pod.
        folder: the pod's folder, absolute.
        options: sbatch's, one word each, `--name=value`.
        python: interpreter of the nodes.
        environment: variables of the supervisor.
    """

    uid: str
    folder: str
    options: tuple[str, ...]
    python: str
    environment: tuple[tuple[str, str], ...] = ()


# Names of Kubernetes' objects (RFC 1123) hold nothing that would have to be quoted.
_POD = re.compile(r"pod=([a-z0-9-]{1,63})/([a-z0-9.-]{1,253})")


def accounted_as(namespace: str, name: str) -> str:
    """Return sbatch's --extra of a pod's job, by which accounting identifies the pod."""
    return f"pod={namespace}/{name}"


def accounted_pod(extra: str) -> tuple[str, str] | None:
    """Return namespace and name of the pod that a job was, or None: the text is its user's to choose."""
    found = _POD.fullmatch(extra)
    return (found[1], found[2]) if found else None


class JobState(StrEnum):
    """Slurm's words (squeue(1), JOB STATE CODES), and one of ours."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    COMPLETING = "COMPLETING"
    SUSPENDED = "SUSPENDED"
    STOPPED = "STOPPED"
    RESIZING = "RESIZING"
    SIGNALING = "SIGNALING"
    STAGE_OUT = "STAGE_OUT"
    REQUEUED = "REQUEUED"
    REQUEUE_FED = "REQUEUE_FED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    NODE_FAIL = "NODE_FAIL"
    BOOT_FAIL = "BOOT_FAIL"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    PREEMPTED = "PREEMPTED"
    REVOKED = "REVOKED"
    UNKNOWN = "UNKNOWN"
    """Slurm has the job, in a state that is none of these: a newer Slurm's, or one that cannot be read."""
    GONE = "GONE"
    """Slurm answered, and neither its queue nor its accounting knows the job."""

    @property
    def waiting(self) -> bool:
        """Whether the job has no nodes yet."""
        return self in _WAITING

    @property
    def ended(self) -> bool:
        """Whether the job will never run again."""
        return self in _ENDED


_WAITING = frozenset(
    {
        JobState.PENDING,
        JobState.REQUEUED,
        JobState.REQUEUE_FED,
        JobState.REQUEUE_HOLD,
        JobState.RESV_DEL_HOLD,
        JobState.SPECIAL_EXIT,
    }
)
_ENDED = frozenset(
    {
        JobState.COMPLETED,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMEOUT,
        JobState.DEADLINE,
        JobState.OUT_OF_MEMORY,
        JobState.NODE_FAIL,
        JobState.BOOT_FAIL,
        JobState.LAUNCH_FAILED,
        JobState.RECONFIG_FAIL,
        JobState.PREEMPTED,
        JobState.REVOKED,
        JobState.GONE,
    }
)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """What Slurm says of a job.

    Attributes:
        id: its number.
        state: see JobState.
        reason: why it waits or ended, Slurm's word, e.g. `Resources`; empty for none.
        nodes: where it runs or ran, Slurm's list; empty while it waits.
        exit_code: of the batch script; None before its end.
        signal: that ended the batch script; 0 for none.
        started: when it got its nodes; None before.
        ended: None before.
        user: who cancelled it, where accounting says so (`CANCELLED by 1001`).
        log: the end of what it wrote, of one that ended before its supervisor said how.
    """

    id: str
    state: JobState
    reason: str = ""
    nodes: str = ""
    exit_code: int | None = None
    signal: int = 0
    started: datetime | None = None
    ended: datetime | None = None
    user: str = ""
    log: str = ""
