"""Stops the kubelet when its program or settings on disk have changed; the control plane then starts the new version.

Supervisors start with each pod and therefore run the installed version. A kubelet from before an upgrade would
send them plans of an old version. A restart is invisible to pods: all state is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PERIOD_S = 5.0
# Identifies a version of a file; None if there is no file.
Mark = tuple[str, int, int] | None


def installed() -> Mark:
    """Return the mark of the installed program; installers write the file RECORD last (PyPA, "Recording ...")."""
    try:
        files = distribution("isthmus").files or ()
    except (PackageNotFoundError, FileNotFoundError):
        return None
    return next((of(Path(str(file.locate()))) for file in files if file.name == "RECORD"), None)


def of(path: Path) -> Mark:
    """Return a file's mark."""
    try:
        status = path.stat()
    except OSError:
        return None
    return str(path), status.st_ino, status.st_mtime_ns


async def changed(*looks: Callable[[], Mark], period_s: float = PERIOD_S) -> None:
    """Wait until a mark changes; one that is None for a while is being replaced.

    Args:
        looks: return a mark each; called in a thread.
        period_s: between two checks.
    """
    first = [await asyncio.to_thread(look) for look in looks]
    while True:
        await asyncio.sleep(period_s)
        found = [await asyncio.to_thread(look) for look in looks]
        if any(new and new != old for old, new in zip(first, found, strict=True)):
            return
