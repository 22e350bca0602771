"""Moments as Kubernetes writes them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


def now() -> str:
    """Return this second, RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def precise(moment_ns: int | None = None) -> str:
    """Return a moment with its nanoseconds, RFC 3339, always of the same length so that texts sort like times."""
    seconds, rest = divmod(time.time_ns() if moment_ns is None else moment_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


def nanoseconds(text: str) -> int:
    """Return the nanoseconds since 1970 of an RFC 3339 moment.

    Raises:
        ValueError: it is none.
    """
    match = _MOMENT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no RFC 3339 moment")
    zone = "+00:00" if match[3] == "Z" else match[3]
    whole = datetime.fromisoformat(match[1] + zone).astimezone(UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))
