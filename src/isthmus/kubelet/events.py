"""Events of a pod, from how its status changed: what `kubectl describe` shows at its end.

Comparing statuses needs no memory: after a crash the status in the API server is the one events were made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from isthmus.kubelet.container_states import named, state_of
from isthmus.kubelet.verdict import DEADLINE_EXCEEDED
from isthmus.model.pod_inputs import Object
from isthmus.model.pod_job import SlurmJob

_LISTS = {
    "initContainerStatuses": "initContainers",
    "containerStatuses": "containers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
# Why a container waits -> reason of the event, and the words before the message.
_WAITS = {
    "ErrImagePull": ("Failed", "Failed to pull image: "),
    "ImagePullBackOff": ("BackOff", ""),
    "ErrImageNeverPull": ("ErrImageNeverPull", ""),
    "InvalidImageName": ("InspectFailed", ""),
    "CreateContainerConfigError": ("Failed", "Error: "),
    "CrashLoopBackOff": ("BackOff", "Back-off restarting failed container: "),
}
_ENDS = {
    "StartError": "Failed",
    "ContainerCannotRun": "Failed",
    "PostStartHookError": "FailedPostStartHook",
    "OOMKilled": "OOMKilling",
}


class Kind(StrEnum):
    """Whether somebody should look."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Attributes:
        kind: see Kind.
        reason: one word.
        message: a sentence.
        place: the part of the pod, e.g. `spec.containers{app}`; empty for the whole.
    """

    kind: Kind
    reason: str
    message: str
    place: str = ""


def changes(old: Object, new: Object, job: SlurmJob | None = None) -> list[Event]:
    """Return what happened between two statuses of a pod.

    Args:
        old: the status in the API server.
        new: the one that shall be there.
        job: the pod's job.
    """
    return [*_placing(old, new, job), *_containers(old, new), *_end(old, new)]


def _placing(old: Object, new: Object, job: SlurmJob | None) -> Iterator[Event]:
    before, after = (_condition(status, "PodScheduled") for status in (old, new))
    waits = after.get("status") == "False"
    if waits and job and (before.get("status"), before.get("reason")) != ("False", after.get("reason")):
        yield Event(Kind.NORMAL, "Queued", after.get("message", ""))
    elif after.get("status") == "True" and before.get("status") != "True" and job and job.nodes:
        yield Event(Kind.NORMAL, "Scheduled", f"Slurm job {job.id} got {job.nodes}")


def _containers(old: Object, new: Object) -> Iterator[Event]:
    for field, kind in _LISTS.items():
        before = named(old.get(field) or ())
        for status in new.get(field) or ():
            for event in _container(before.get(status["name"], {}), status):
                yield Event(event.kind, event.reason, event.message, f"spec.{kind}{{{status['name']}}}")


def _container(old: Object, new: Object) -> Iterator[Event]:
    name, started = new["name"], new.get("containerID")
    state, fields = state_of(new)
    was, fields_before = state_of(old)
    if started and started != old.get("containerID"):
        yield Event(Kind.NORMAL, "Started", f"Container {name} started")
    elif state == was == "running" and old.get("ready") and not new.get("ready"):
        yield Event(Kind.WARNING, "Unhealthy", f"Container {name} is no longer ready")
    if (state, fields.get("reason")) == (was, fields_before.get("reason")):
        return
    if state == "waiting" and fields.get("reason") in _WAITS:
        reason, words = _WAITS[fields["reason"]]
        yield Event(Kind.WARNING, reason, f"{words}{fields.get('message', name)}")
    if state == "terminated" and fields.get("reason") in _ENDS:
        yield Event(Kind.WARNING, _ENDS[fields["reason"]], f"Container {name}: {fields.get('message') or 'killed'}")


def _end(old: Object, new: Object) -> Iterator[Event]:
    told = (new.get("reason"), new.get("message"))
    if not new.get("reason") or told == (old.get("reason"), old.get("message")):
        return
    failed = new.get("phase") == "Failed"
    if failed or new["reason"] in (DEADLINE_EXCEEDED, "FailedMount", "FailedSubmit"):
        yield Event(Kind.WARNING, str(new["reason"]), str(new.get("message", "")))


def _condition(status: Object, kind: str) -> Object:
    found = (one for one in status.get("conditions") or () if one["type"] == kind)
    return next(found, {})
