"""Statuses of containers, from the supervisor's report.

A container without a report is waiting. When the job has ended nothing can run: a running container was killed with it,
a container that never ran stays waiting, and both have the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from isthmus.kubelet.pods.verdict import KILLED, Verdict
from isthmus.kubelet.translate.resources import is_sidecar
from isthmus.model.pod_inputs import ImageState, Object
from isthmus.podproto.reasons import Reason


def statuses(
    pod: Object,
    kind: str,
    report: Object | None,
    images: Mapping[str, ImageState],
    over: Verdict | None,
    end: datetime,
) -> list[dict[str, Any]]:
    """Return the statuses of one kind of containers, in the pod's order.

    Args:
        pod: the pod.
        kind: `containers`, `initContainers` or `ephemeralContainers`.
        report: the supervisor's last.
        images: name of a container -> where its image stands.
        over: why the job has ended; None while it may run.
        end: when the job ended.
    """
    reported = (report or {}).get("containers") or {}
    waits = Reason.INITIALIZING if pod["spec"].get("initContainers") else Reason.CREATING
    found = []
    for container in pod["spec"].get(kind) or ():
        name = container["name"]
        image = images.get(name, ImageState())
        known = reported.get(name) or {}
        state = _state(known, image, waits, over, end)
        found.append(_status(container, kind, known, image, state, (report or {}).get("job", "")))
    return found


def state_of(status: Object) -> tuple[str, Mapping[str, Any]]:
    """Return a status's state and its fields."""
    return next(((name, fields or {}) for name, fields in (status.get("state") or {}).items()), ("waiting", {}))


def last_finish(report: Object | None) -> datetime | None:
    """Return when the last container of an ended pod ended."""
    known = ((report or {}).get("containers") or {}).values()
    return max((time for time in (read_time(one.get("finished")) for one in known) if time), default=None)


def read_time(text: object) -> datetime | None:
    """Parse RFC 3339; None if invalid."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def write_time(time: datetime) -> str:
    """Format RFC 3339 in whole seconds, the precision of the API."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _state(known: Object, image: ImageState, waits: str, over: Verdict | None, end: datetime) -> dict[str, Any]:
    state = known.get("state")
    if state == "terminated":
        return {"terminated": _terminated(known)}
    if over is not None and over.container_reason and (over.reason or state == "running"):
        return _stopped(known, over, end)
    if state == "running":
        return {"running": _dated(startedAt=known.get("started"))}
    reason = known.get("reason") or image.reason or waits
    message = known.get("message") or image.message
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def _stopped(known: Object, over: Verdict, end: datetime) -> dict[str, Any]:
    if known.get("state") != "running":
        return {"waiting": {"reason": over.reason, "message": over.message}}
    killed = {"exitCode": KILLED, "reason": over.container_reason, "message": over.message}
    return {"terminated": {**killed, **_dated(startedAt=known.get("started")), "finishedAt": write_time(end)}}


def _terminated(known: Object) -> dict[str, Any]:
    code = known.get("exit_code")
    plain = {"exitCode": KILLED if code is None else code, "reason": known.get("reason") or _why(code)}
    extra = {key: known[key] for key in ("signal", "message") if known.get(key)}
    return {**plain, **extra, **_dated(startedAt=known.get("started"), finishedAt=known.get("finished"))}


def _why(code: int | None) -> str:
    return Reason.UNKNOWN if code is None else Reason.of_exit(code)


def _status(
    container: Object, kind: str, known: Object, image: ImageState, state: dict[str, Any], job: str
) -> dict[str, Any]:
    restarts = known.get("restarts") or 0
    status = {
        "name": container["name"],
        "image": known.get("image_name") or container.get("image", ""),
        "imageID": known.get("image_id") or image.id,
        "restartCount": restarts,
        "state": state,
        "lastState": {"terminated": _terminated(known["last"])} if known.get("last") else {},
        "ready": _ready(container, kind, known, state),
        "started": bool(known.get("is_started")) and "running" in state,
    }
    if known.get("started"):
        identity = f"apptainer://{job}.{container['name']}.{restarts}"
        status["containerID"] = identity
        if "terminated" in state:
            state["terminated"]["containerID"] = identity
    return status


def _ready(container: Object, kind: str, known: Object, state: Mapping[str, Any]) -> bool:
    if kind == "initContainers" and not is_sidecar(container):
        return "terminated" in state and state["terminated"]["exitCode"] == 0
    return kind != "ephemeralContainers" and "running" in state and bool(known.get("ready"))


def _dated(**times: object) -> dict[str, str]:
    found = {name: read_time(text) for name, text in times.items()}
    return {name: write_time(time) for name, time in found.items() if time}


def named(found: Iterable[Object]) -> dict[str, Object]:
    """Return statuses by name."""
    return {status["name"]: status for status in found}
