"""What the state of a Slurm job means for its pod.

`kubectl get` shows `reason`, so it is Slurm's own word: a pending pod shows `Resources` or
`QOSMaxJobsPerUserLimit`, an ended one `TIMEOUT` or `NODE_FAIL`. Where Kubernetes has a reason that controllers
act on (DeadlineExceeded, OOMKilled, the condition DisruptionTarget), that is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from isthmus.model.pod_inputs import Object
from isthmus.model.pod_job import JobState, SlurmJob
from isthmus.podproto.reasons import Reason

KILLED = 137
"""Exit code after SIGKILL (128 + 9)."""

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Ended by Slurm, whatever the containers reported at the end.
_STOPPED = frozenset(
    {
        JobState.CANCELLED,
        JobState.TIMEOUT,
        JobState.DEADLINE,
        JobState.NODE_FAIL,
        JobState.BOOT_FAIL,
        JobState.PREEMPTED,
        JobState.REVOKED,
    }
)
EXPLANATIONS = {
    JobState.CANCELLED: "was cancelled",
    JobState.TIMEOUT: "reached its time limit; ask for more by activeDeadlineSeconds or --time",
    JobState.DEADLINE: "could not end before its deadline",
    JobState.OUT_OF_MEMORY: "used more memory than its containers ask for; raise resources.limits.memory",
    JobState.NODE_FAIL: "lost its node",
    JobState.BOOT_FAIL: "lost its node while that started",
    JobState.PREEMPTED: "made room for a job of higher priority",
    JobState.REVOKED: "was revoked",
    JobState.FAILED: "failed; see slurm.log in the pod's folder",
    JobState.LAUNCH_FAILED: "could not be started; see slurm.log in the pod's folder",
    JobState.COMPLETED: "ended before its supervisor reported how",
    JobState.GONE: "is gone: neither Slurm's queue nor its accounting knows it",
}
_DISRUPTIONS = {
    JobState.PREEMPTED: "PreemptionByScheduler",
    JobState.NODE_FAIL: "TerminationByKubelet",
    JobState.BOOT_FAIL: "TerminationByKubelet",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a job is pending, or how it ended.

    Attributes:
        reason: one word.
        message: a sentence, with the job's number.
        failed: the pod failed, whatever its containers say.
        container_reason: reason of containers that ran until the job ended.
        disruption: reason of the condition DisruptionTarget; empty for none.
    """

    reason: str
    message: str
    failed: bool = False
    container_reason: str = ""
    disruption: str = ""


NOT_SUBMITTED = Verdict(Reason.NOT_SUBMITTED, "The Slurm job is submitted when images and volumes are known")

LOST = Verdict("", "The container was running when its supervisor reported the end", container_reason=Reason.UNKNOWN)
"""Of a pod that reported its end, except for one container."""


def waiting(job: SlurmJob) -> Verdict:
    """Return why a job has no nodes yet."""
    if reason := _word(job.reason):
        said = job.reason
    elif job.state == JobState.PENDING:
        reason, said = "Pending", "Slurm has not looked at it yet"
    else:
        reason = said = job.state.value
    return Verdict(reason, f"Slurm job {job.id} is pending: {said}")


def ended(pod: Object, report: Object | None, job: SlurmJob) -> Verdict | None:
    """Return what an ended job means; None if the containers' own states say it."""
    reported_end = (report or {}).get("phase") == "ended"
    deleted = bool(pod["metadata"].get("deletionTimestamp"))
    if reported_end and (deleted or job.state not in _STOPPED):
        if job.state != JobState.OUT_OF_MEMORY:
            return None
        return Verdict(job.state.value, _message(job), container_reason=Reason.OOM_KILLED)
    word = job.state.value
    if job.state == JobState.COMPLETED:
        word = Reason.UNKNOWN
    if job.state == JobState.TIMEOUT and pod["spec"].get("activeDeadlineSeconds"):
        word = Reason.DEADLINE
    killed = Reason.OOM_KILLED if job.state == JobState.OUT_OF_MEMORY else word
    return Verdict(word, _message(job), not deleted, killed, _DISRUPTIONS.get(job.state, ""))


def deadline(pod: Object, job: SlurmJob | None) -> datetime | None:
    """Return when a pod must have ended; None if it has no deadline or has not started.

    The deadline counts from the start of the job, as Slurm's time limits do, not from its submission.
    """
    limit_s = pod["spec"].get("activeDeadlineSeconds")
    return job.started + timedelta(seconds=limit_s) if limit_s and job and job.started else None


def overdue(pod: Object, job: SlurmJob, end: datetime) -> Verdict | None:
    """Return a verdict if the pod is, or was, active beyond its deadline.

    Args:
        pod: the pod.
        job: its job.
        end: when its last container or its job ended, else now.
    """
    due = deadline(pod, job)
    if due is None or end < due:
        return None
    message = f"Pod was active on the node longer than the specified deadline (Slurm job {job.id})"
    return Verdict(Reason.DEADLINE, message, True, Reason.DEADLINE)


def condition(verdict: Verdict) -> dict[str, Any]:
    """Return the condition by which controllers know that the pod did not fail by itself."""
    return {"type": "DisruptionTarget", "status": "True", "reason": verdict.disruption, "message": verdict.message}


def _message(job: SlurmJob) -> str:
    parts = [f"Slurm job {job.id} {EXPLANATIONS.get(job.state, 'ended')}", f"state {job.state}"]
    if job.nodes:
        parts.append(f"on {job.nodes}")
    if job.user:
        parts.append(f"by {job.user}")
    if _word(job.reason):
        parts.append(f"reason {job.reason}")
    if job.exit_code or job.signal:
        parts.append(f"exit code {job.exit_code or 0}, signal {job.signal}")
    words = f": {job.log}" if job.log else ""
    return f"{parts[0]} ({', '.join(parts[1:])}){words}"


def _word(text: str) -> str:
    """Return a reason's first word; Slurm writes `None` where it has none."""
    found = _WORD.match(text)
    return "" if found is None or found[0] == "None" else found[0]
