"""Ends the kubelet when what it was started from is not what lies on the disk any more; it is then started again.

Supervisors begin with each pod and so are always of the code that is installed. A kubelet from before an upgrade would
send them plans of the old form, which they refuse. Beginning anew costs no pod anything: all that matters is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PERIOD_S = 5.0
# Says which state of a file this is; None while there is none.
Mark = tuple[str, int, int] | None


def installed() -> Mark:
    """Return the mark of this program's installation; installers write the file RECORD last (PyPA, "Recording ...")."""
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
    """Return when one of the marks is another than now; one that is away for a while is being replaced.

    Args:
        looks: each returns a mark; called in a thread.
        period_s: between looks.
    """
    first = [await asyncio.to_thread(look) for look in looks]
    while True:
        await asyncio.sleep(period_s)
        found = [await asyncio.to_thread(look) for look in looks]
        if any(new and new != old for old, new in zip(first, found, strict=True)):
            return
