"""A pod's status, from what the supervisor reported and what Slurm says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from isthmus.model.pod_inputs import ImageState, Object
from isthmus.model.pod_job import SlurmJob


def pod_status(
    pod: Object, report: Object | None, slurm_job: SlurmJob | None, images: Mapping[str, ImageState], now: datetime
) -> dict[str, Any]:
    """Return v1.PodStatus as JSON.

    Args:
        pod: with the status written last, whose times are kept.
        report: the supervisor's last; None before its first.
        slurm_job: what Slurm says; None before the job is submitted.
        images: name of a container -> where its image stands.
        now: with a time zone.
    """
    return {**(pod.get("status") or {}), "phase": "Pending" if report is None else "Running"}


def refused(pod: Object, problems: list[str], now: datetime) -> dict[str, Any]:
    """Return the status of a pod that can never run here."""
    message = "; ".join(problems)
    return {**(pod.get("status") or {}), "phase": "Failed", "reason": "UnsupportedPod", "message": message}
