"""Timestamps in Kubernetes' formats."""

from __future__ import annotations

import time


def now() -> str:
    """Return the current time in whole seconds, RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def precise(moment_ns: int | None = None) -> str:
    """Return a time with nanoseconds, RFC 3339, of a fixed length, so that texts sort like times."""
    seconds, rest = divmod(time.time_ns() if moment_ns is None else moment_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"
