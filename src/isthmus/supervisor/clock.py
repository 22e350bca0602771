"""Moments as Kubernetes writes them."""

from __future__ import annotations

import time


def now() -> str:
    """Return this second, RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def precise(moment_ns: int | None = None) -> str:
    """Return a moment with its nanoseconds, RFC 3339, always of the same length so that texts sort like times."""
    seconds, rest = divmod(time.time_ns() if moment_ns is None else moment_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"
