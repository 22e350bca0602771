"""Whether this host's slurmd has loaded the plugin: plugstack.conf calls it optional, so Slurm runs without it.

Jobs that ask for a network would fail, but those that get one by default would run in the host's, and nobody
would notice. slurmd keeps what it loaded in its memory, and the kernel lists those files (proc(5)).

Anybody may call a process slurmd, and give it files of any name, so only a process of root's that runs Slurm's own
slurmd counts. Its owner is read from `status`: the folder's owner is root for any process that is not dumpable.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from threading import Lock

FILE = b"isthmus_spank.so"
# How long an answer is good: looking at all processes takes milliseconds, and anybody may ask.
ANSWER_S = 3.0
# Real, effective, saved and file system's uid.
_ROOTS = re.compile(rb"^Uid:\t0\t0\t0\t0$", re.MULTILINE)
# The kernel's word for a program that was replaced since.
_DELETED = " (deleted)"


class Plugin(StrEnum):
    """What slurmd has."""

    LOADED = "loaded"
    MISSING = "not loaded by slurmd; restart it and look for plugstack in its log"
    NO_SLURMD = "no slurmd runs here"


class Watcher:
    """Looks now and then; may be used by several threads.

    Args:
        slurmd: the program.
        proc: of this host.
        clock: in seconds; never goes back.
    """

    def __init__(self, slurmd: Path, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._slurmd = slurmd
        self._proc = proc
        self._clock = clock
        self._known: tuple[float, Plugin] | None = None
        self._lock = Lock()

    def state(self) -> Plugin:
        """Return whether slurmd has the plugin, or had it a moment ago."""
        with self._lock:
            now = self._clock()
            if self._known is None or now - self._known[0] >= ANSWER_S:
                self._known = now, state(self._slurmd, self._proc)
            return self._known[1]


def state(slurmd: Path, proc: Path = Path("/proc")) -> Plugin:
    """Return whether slurmd has the plugin."""
    program = str(slurmd.resolve())
    maps = [found for process in proc.iterdir() if (found := _maps_of(process, program)) is not None]
    if not maps:
        return Plugin.NO_SLURMD
    return Plugin.LOADED if any(FILE in found for found in maps) else Plugin.MISSING


def _maps_of(process: Path, program: str) -> bytes | None:
    """Return what a process of root's has in its memory, None where it is no such process or does not run this."""
    if not process.name.isdecimal():
        return None
    try:
        runs = str((process / "exe").readlink()).removesuffix(_DELETED)
        is_slurmd = runs == program and _ROOTS.search((process / "status").read_bytes()) is not None
        return (process / "maps").read_bytes() if is_slurmd else None
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # ended meanwhile, or the kernel's own
        return None
