"""The processes below one, by /proc. It imports little: ranks need it too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def below(pid: int, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yield a process and all below it, parents first; those that come or go meanwhile may be missed."""
    found = [pid]
    for each in found:
        yield each
        # Threads come and go.
        with suppress(OSError):
            for task in os.listdir(proc / str(each) / "task"):
                with suppress(OSError):
                    found += map(int, (proc / str(each) / "task" / task / "children").read_text().split())


def running(pid: int, program: str, proc: Path = Path("/proc")) -> int | None:
    """Return the first process below one that was started by this name; None if there is none."""
    for each in below(pid, proc):
        with suppress(OSError):
            if (proc / str(each) / "cmdline").read_bytes().split(b"\0")[0] == os.fsencode(program):
                return each
    return None
