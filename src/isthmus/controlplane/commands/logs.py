"""`isthmus logs`: the logs of programs, also while they grow and are rotated."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout

_PAUSE_S = 0.3


def names(layout: Layout) -> list[str]:
    """Return the logs there are."""
    return sorted(path.stem for path in layout.logs.glob("*.log"))


def lines(layout: Layout, name: str, tail: int, *, follow: bool) -> Iterator[str]:
    """Yield the last lines of a log, and then each new one where it is followed.

    Raises:
        ControlPlaneError: there is no such log.
    """
    path = layout.logs / f"{name}.log"
    if not path.exists():
        there = ", ".join(names(layout)) or "none yet: `isthmus up` starts the cluster"
        raise ControlPlaneError(f"there is no log {name}; choose from: {there}")
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from deque(file, maxlen=tail)
        inode = path.stat().st_ino
        while follow:
            line = file.readline()
            if line:
                yield line
            elif _turned(path, inode):
                break
            else:
                time.sleep(_PAUSE_S)
    if follow:
        yield from lines(layout, name, 1 << 20, follow=True)


def _turned(path: Path, inode: int) -> bool:
    """Return whether a new file has the name."""
    try:
        return path.stat().st_ino != inode
    except FileNotFoundError:
        return False
