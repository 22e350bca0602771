"""How a pod's job is brought to its end: asked first, then told, then killed.

Its supervisor runs hooks, sends SIGTERM and waits for the grace period. Where no supervisor is, or the time is over,
Slurm ends the job. A shorter grace period (`kubectl delete --now` after a patient one) is passed on.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from isthmus.clients.kube.api import Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods.parts import Parts
from isthmus.model.pod_job import SlurmJob

_DEFAULT_S = 30
_LOOK_S = 1.0


class Stopping:
    """The end of one job.

    Args:
        parts: Slurm, and how long to wait.
        uid: of the pod.
        number: its job.
    """

    def __init__(self, parts: Parts, uid: str, number: str) -> None:
        self._parts, self._uid, self._number = parts, uid, number
        self._told: tuple[Connection, int] | None = None
        self._cancel_at_s = time.monotonic() + parts.pauses.connect

    async def go_on(self, pod: Object, job: SlurmJob | None, connection: Connection | None, *, gone: bool) -> float:
        """Do the next step if it is time; return after how many seconds to look again.

        Args:
            pod: the pod.
            job: what Slurm last said; None before its first word.
            connection: the supervisor, if it is there.
            gone: the API has the pod no more: there is no grace.
        """
        if job is not None and job.state.waiting:
            # There is nobody to ask.
            self._cancel_at_s = min(self._cancel_at_s, time.monotonic())
        elif connection is not None:
            await self._tell(connection, pod, gone=gone)
        left_s = self._cancel_at_s - time.monotonic()
        if left_s <= 0:
            await self._parts.jobs.cancel(self._uid, self._number)
            self._cancel_at_s = time.monotonic() + self._parts.pauses.margin
            return _LOOK_S
        return min(left_s, _LOOK_S) if self._told else left_s

    async def _tell(self, connection: Connection, pod: Object, *, gone: bool) -> None:
        """Tell the supervisor once, and again when another one is there or the whole grace period has shrunk."""
        whole = 0 if gone else given_s(pod)
        if self._told and self._told[0] is connection and whole >= self._told[1]:
            return
        left = 0 if gone else grace_s(pod, datetime.now(UTC))
        await connection.send({"type": "stop", "grace_s": left})
        self._told = (connection, whole)
        self._cancel_at_s = time.monotonic() + left + self._parts.pauses.margin


def given_s(pod: Object) -> int:
    """Return how many seconds a pod was given."""
    own = pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_S)
    return int(pod["metadata"].get("deletionGracePeriodSeconds", own))


def grace_s(pod: Object, now: datetime) -> int:
    """Return how many seconds a pod has; of a deletion that has begun, what is left."""
    ends = pod["metadata"].get("deletionTimestamp")
    if not ends:
        return given_s(pod)
    left_s = (datetime.fromisoformat(ends) - now).total_seconds()
    return max(0, min(given_s(pod), round(left_s)))
