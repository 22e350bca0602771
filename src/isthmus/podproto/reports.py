"""Messages of a supervisor: a report, the end of a stream, metrics; each is validated strictly.

A supervisor lives beside the containers of its pod, so what it says is a stranger's text: one that makes the kubelet
stumble would keep its pod from being shown, stopped and removed. Who takes a report relies on the types that are
checked here. A field that is missing is one of an older supervisor, and its readers know how to do without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

Object = dict[str, Any]
Check = Callable[[Any], bool]

# Statuses hold int32 for exit codes and counts; figures of /proc are larger.
_INT32 = 2**31
_INT64 = 2**63
# What the API server takes of a whole status is about a megabyte.
_TEXT_BYTES = 1 << 16
_CONTAINERS = 1000
_FEATURES = 100
_JOB = re.compile(r"[0-9]{0,10}", re.ASCII)
# Before and after these years a time cannot be written in all zones, or is not one of a container.
_YEARS = range(1970, 2200)


class ReportError(ValueError):
    """A supervisor says what none says."""


def checked(report: Object) -> Object:
    """Return a report whose fields can be relied on.

    Raises:
        ReportError: one of them cannot be what it says.
    """
    return _fields(report, _REPORT, "report", ("sequence", "containers"))


def checked_end(end: Object) -> Object:
    """Return the end of a stream.

    Raises:
        ReportError: a field cannot be what it says.
    """
    return _fields(end, _END, "end", ("stream",))


def checked_window(window: Object) -> Object:
    """Return a grant of bytes for a stream.

    Raises:
        ReportError: a field cannot be what it says.
    """
    return _fields(window, _WINDOW, "window", ("stream", "bytes"))


def checked_hello(hello: Object) -> Object:
    """Return what a supervisor says first.

    Raises:
        ReportError: a field cannot be what it says.
    """
    return _fields(hello, _HELLO, "hello", ("job", "node"))


def checked_figures(figures: Object) -> Object:
    """Return what containers use.

    Raises:
        ReportError: a field cannot be what it says.
    """
    return _fields(figures, _FIGURES, "figures", ())


def _fields(found: Any, table: Mapping[str, Check], what: str, needed: tuple[str, ...]) -> Object:
    if not isinstance(found, dict):
        raise ReportError(f"{what} is no object")
    for name in needed:
        if name not in found:
            raise ReportError(f"{what} has no {name}")
    for name, check in table.items():
        if name in found and not check(found[name]):
            raise ReportError(f"{name} of {what} cannot be {found[name]!r:.80}")
    return found


def _object(table: Mapping[str, Check]) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(check(value[name]) for name, check in table.items() if name in value)
    )


def _named(check: Check, most: int = _CONTAINERS) -> Check:
    return lambda value: (
        isinstance(value, dict) and len(value) <= most and all(_text(key) and check(one) for key, one in value.items())
    )


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _text(value: object) -> bool:
    """Return whether it is text; JSON may bring halves of characters, which nothing can encode."""
    if not isinstance(value, str) or len(value) > _TEXT_BYTES:
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _integer(least: int, beyond: int) -> Check:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value < beyond


def _time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return datetime.fromisoformat(value).astimezone(UTC).year in _YEARS
    except (ValueError, OverflowError):
        return False


def _address(value: object) -> bool:
    if value == "":
        return True
    try:
        return isinstance(value, str) and bool(ip_address(value))
    except ValueError:
        return False


def _job(value: object) -> bool:
    return isinstance(value, str) and _JOB.fullmatch(value) is not None


_NUMBER = _integer(0, _INT32)
_EXIT: dict[str, Check] = {
    "reason": _maybe(_text),
    "message": _maybe(_text),
    "exit_code": _maybe(_integer(-_INT32, _INT32)),
    "signal": _maybe(_NUMBER),
    "started": _maybe(_time),
    "finished": _maybe(_time),
}
_CONTAINER: dict[str, Check] = {
    **_EXIT,
    "state": lambda value: value in ("waiting", "running", "terminated"),
    "restarts": _maybe(_NUMBER),
    "is_started": _flag,
    "ready": _flag,
    "image_id": _maybe(_text),
    "image_name": _maybe(_text),
    "last": _maybe(_object(_EXIT)),
    "failures": _maybe(_named(_object({"times": _NUMBER, "message": _text}), 3)),
    "killing": _maybe(_text),
    "oom_kills": _maybe(_NUMBER),
}
_PLACE: dict[str, Check] = {
    "job": _job,
    "node": _text,
    "host_address": _address,
    "addresses": lambda value: isinstance(value, list) and len(value) <= 2 and all(map(_address, value)),
}
_HELLO: dict[str, Check] = {
    **_PLACE,
    "has_plan": _flag,
    "versions": lambda value: isinstance(value, list) and len(value) <= _FEATURES and all(map(_NUMBER, value)),
    "features": lambda value: isinstance(value, list) and len(value) <= _FEATURES and all(map(_text, value)),
}
_REPORT: dict[str, Check] = {
    **_PLACE,
    "sequence": _integer(0, _INT64),
    "phase": _text,
    "error": _maybe(_object({"reason": _maybe(_text), "message": _maybe(_text)})),
    "services_error": _maybe(_text),
    "sigterm": _flag,
    "containers": _named(_object(_CONTAINER)),
}
_END: dict[str, Check] = {
    "stream": _integer(0, 1 << 32),
    "exit_code": _maybe(_integer(-_INT32, _INT32)),
    "error": _maybe(_text),
}
_WINDOW: dict[str, Check] = {"stream": _integer(0, 1 << 32), "bytes": _integer(1, _INT32)}
_FIGURES: dict[str, Check] = {
    "containers": _named(
        _object({"cpu_ns": _integer(0, _INT64), "memory_bytes": _integer(0, _INT64), "started": _maybe(_time)})
    )
}
