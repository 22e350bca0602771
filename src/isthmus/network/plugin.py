"""Whether this host's slurmd has our plugin: plugstack.conf calls it optional, so Slurm runs on without it.

Jobs that ask would be told, but those that get a network by the admin's default would run in the host's, and nobody
would notice. slurmd keeps what it loaded in its memory, and the kernel tells which files those are (proc(5)).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

FILE = "isthmus_spank.so"


class Plugin(StrEnum):
    """What slurmd has."""

    LOADED = "loaded"
    MISSING = "not loaded by slurmd; restart it and look for plugstack in its log"
    NO_SLURMD = "no slurmd runs here"


def state(proc: Path = Path("/proc")) -> Plugin:
    """Tell whether slurmd has the plugin."""
    maps = [text for process in proc.iterdir() if (text := _maps_of_slurmd(process)) is not None]
    if not maps:
        return Plugin.NO_SLURMD
    return Plugin.LOADED if any(FILE in text for text in maps) else Plugin.MISSING


def _maps_of_slurmd(process: Path) -> str | None:
    try:
        is_slurmd = process.name.isdecimal() and (process / "comm").read_bytes().strip() == b"slurmd"
        return (process / "maps").read_text() if is_slurmd else None
    except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
        return None
