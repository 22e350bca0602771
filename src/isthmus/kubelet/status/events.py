"""Events of a pod, derived from changes of its status.

Comparing statuses needs no memory: after a crash the status in the API server is the one last compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from isthmus.kubelet.status.containers import named, state_of
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.model.pod_inputs import Object
from isthmus.model.pod_job import SlurmJob
from isthmus.podproto.reasons import Reason

_LISTS = {
    "initContainerStatuses": "initContainers",
    "containerStatuses": "containers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


class Kind(StrEnum):
    """Type of an event."""

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


def changes(old: Object, new: Object, job: SlurmJob | None = None, pod: str = "") -> list[Event]:
    """Return the events of a change between two statuses of a pod.

    Args:
        old: the status in the API server.
        new: the desired status.
        job: the pod's job.
        pod: its name, as Kubernetes writes it in messages.
    """
    return [*_placing(old, new, job), *_containers(old, new, pod), *_end(old, new)]


def reported(pod: Object, old: Object | None, new: Object) -> list[Event]:
    """Return the events between two reports that no status shows: failed probes, processes ended for want of memory."""
    before = (old or {}).get("containers") or {}
    found: list[Event] = []
    for field in _LISTS.values():
        for one in pod["spec"].get(field) or ():
            now, was = (part.get(one["name"]) or {} for part in (new.get("containers") or {}, before))
            place = f"spec.{field}{{{one['name']}}}"
            found += [Event(Kind.WARNING, EventReason.UNHEALTHY, text, place) for text in _failures(was, now)]
            if now.get("killing") and now["killing"] != was.get("killing"):
                found.append(Event(Kind.NORMAL, EventReason.KILLING, now["killing"], place))
            if more := (now.get("oom_kills") or 0) - (was.get("oom_kills") or 0):
                text = f"The kernel ended {more} of its processes: the memory of the pod is used up; request more"
                found.append(Event(Kind.WARNING, EventReason.OOM_KILLING, text, place))
    return found


def full_name(pod: Object) -> str:
    """Return a pod's name with namespace and UID, in the upstream kubelet's format."""
    meta = pod["metadata"]
    return f"{meta['name']}_{meta.get('namespace') or 'default'}({meta['uid']})"


def _failures(old: Object, new: Object) -> Iterator[str]:
    before = old.get("failures") or {}
    for kind, failure in (new.get("failures") or {}).items():
        if failure["times"] != before.get(kind, {}).get("times"):
            yield f"{kind.capitalize()} probe failed: {failure['message']}"


def _placing(old: Object, new: Object, job: SlurmJob | None) -> Iterator[Event]:
    before, after = (_condition(status, "PodScheduled") for status in (old, new))
    waits = after.get("status") == "False"
    if waits and job and (before.get("status"), before.get("reason")) != ("False", after.get("reason")):
        yield Event(Kind.NORMAL, EventReason.QUEUED, after.get("message", ""))
    elif after.get("status") == "True" and before.get("status") != "True" and job and job.nodes:
        yield Event(Kind.NORMAL, EventReason.SCHEDULED, f"Slurm job {job.id} got {job.nodes}")


def _containers(old: Object, new: Object, pod: str) -> Iterator[Event]:
    for field, kind in _LISTS.items():
        before = named(old.get(field) or ())
        for status in new.get(field) or ():
            for event in _container(before.get(status["name"], {}), status, pod):
                yield Event(event.kind, event.reason, event.message, f"spec.{kind}{{{status['name']}}}")


def _container(old: Object, new: Object, pod: str) -> Iterator[Event]:
    name, started = new["name"], new.get("containerID")
    state, fields = state_of(new)
    was, fields_before = state_of(old)
    if started and started != old.get("containerID"):
        yield Event(Kind.NORMAL, EventReason.CREATED, "Container created")
        yield Event(Kind.NORMAL, EventReason.STARTED, "Container started")
    if (state, fields.get("reason")) == (was, fields_before.get("reason")):
        return
    reason = Reason.known(fields.get("reason"))
    if state == "waiting" and reason is Reason.CRASH_LOOP:
        yield Event(Kind.WARNING, EventReason.BACK_OFF, f"Back-off restarting failed container {name} in pod {pod}")
    if reason and reason.event and state == "waiting":
        yield Event(Kind.WARNING, reason.event, f"{reason.words}{fields.get('message', name)}")
    if reason and reason.event and state == "terminated":
        yield Event(Kind.WARNING, reason.event, f"Container {name}: {fields.get('message') or 'killed'}")


def _end(old: Object, new: Object) -> Iterator[Event]:
    cause = (new.get("reason"), new.get("message"))
    if not new.get("reason") or cause == (old.get("reason"), old.get("message")):
        return
    reason = Reason.known(new["reason"])
    if new.get("phase") == "Failed" or (reason and reason.is_of_pod):
        words = reason.words if reason and reason.is_of_pod else ""
        yield Event(Kind.WARNING, str(new["reason"]), f"{words}{new.get('message', '')}")


def _condition(status: Object, kind: str) -> Object:
    found = (one for one in status.get("conditions") or () if one["type"] == kind)
    return next(found, {})
