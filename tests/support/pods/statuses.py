"""Builders of what a supervisor reports and what Slurm says, and what becomes of it, for tables of statuses."""

from datetime import UTC, datetime, timedelta
from typing import Any

from isthmus.kubelet.status.pod import pod_status
from isthmus.model.pod_inputs import ImageState
from isthmus.model.pod_job import JobState, SlurmJob
from tests.support.pods.objects import UID, pod

START = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Return a moment after the start of all jobs."""
    return START + timedelta(seconds=seconds)


def text(seconds: float) -> str:
    """Return that moment as a supervisor writes it."""
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def waiting(reason: str = "ContainerCreating", **fields: Any) -> dict[str, Any]:
    """Return a container that waits."""
    return {"state": "waiting", "reason": reason, "restarts": 0, "is_started": False, "ready": False, **fields}


def running(since: float = 1, ready: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a container that runs."""
    times = {"started": text(since), "restarts": 0, "image_id": "app@sha256:1"}
    return {"state": "running", "is_started": True, "ready": ready, **times, **fields}


def ended(code: int | None = 0, end: float = 5, **fields: Any) -> dict[str, Any]:
    """Return a container that ended."""
    return {**running(), "state": "terminated", "exit_code": code, "finished": text(end), "ready": False, **fields}


def report(phase: str = "running", error: dict[str, str] | None = None, **containers: Any) -> dict[str, Any]:
    """Return a report on these containers."""
    place = {"job": "12", "node": "c1", "addresses": ["10.64.0.9"], "host_address": "192.0.2.1"}
    return {"schema": 1, "uid": UID, "sequence": 1, "phase": phase, "error": error, "containers": containers, **place}


def job(state: JobState = JobState.RUNNING, **fields: Any) -> SlurmJob:
    """Return a job; when it has nodes, it has them since the start."""
    if not state.waiting:
        fields = {"nodes": "c1", "started": START, **fields}
    return SlurmJob("12", state, **fields)


def status(
    whole: dict[str, Any] | None = None,
    reported: dict[str, Any] | None = None,
    slurm: SlurmJob | None = None,
    images: dict[str, ImageState] | None = None,
    now: float = 60,
) -> dict[str, Any]:
    """Return a pod's status."""
    return pod_status(whole or pod(), reported, slurm, images or {}, at(now))


def reported_by(found: dict[str, Any]) -> tuple[str, str | None, str | None, str | None]:
    """Return phase, reason, and the first container's state and its reason."""
    [first, *_] = found.get("containerStatuses") or [{"state": {}}]
    [(state, fields), *_] = first["state"].items() or [(None, {})]
    return found["phase"], found.get("reason"), state, (fields or {}).get("reason")
