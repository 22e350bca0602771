"""Snapshots on the home: their names sort by age, and each is whole or absent.

A name is <generation>-<revision>.db, and -final before the dot where nothing was written after it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from isthmus.support import durable

# At half a minute each: a few minutes, against a file that went bad.
KEPT = 5
_TEMPORARY = ".new-"
_NAME = re.compile(r"(?P<generation>\d{6})-(?P<revision>\d{16})(?P<final>-final)?\.db")


@dataclass(frozen=True, slots=True, order=True)
class Snapshot:
    """One of them; the greater is the newer.

    Attributes:
        generation: of the data it is of.
        revision: of etcd, at least.
        is_final: whether it was taken when nobody wrote any more.
    """

    generation: int
    revision: int
    is_final: bool = False

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.generation:06}-{self.revision:016}{'-final' if self.is_final else ''}.db"

    @staticmethod
    def parse(name: str) -> Snapshot | None:
        """Return the snapshot of a file's name; None for another file."""
        found = _NAME.fullmatch(name)
        return Snapshot(int(found["generation"]), int(found["revision"]), bool(found["final"])) if found else None


def listed(folder: Path) -> list[Snapshot]:
    """Return those in a folder, in no order."""
    names = os.listdir(folder) if folder.is_dir() else []
    return [found for name in names if (found := Snapshot.parse(name))]


def publish(
    folder: Path, snapshot: Snapshot, write: Callable[[BinaryIO], int], check: Callable[[], None] = lambda: None
) -> int:
    """Write a snapshot; under its name it is whole, and on the disk of the home.

    Args:
        folder: of the snapshots.
        snapshot: which one.
        write: writes its content, returns the bytes; what it raises leaves nothing behind.
        check: called at the last moment; what it raises leaves nothing behind.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = mkstemp(dir=folder, prefix=_TEMPORARY)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            size = write(file)
        durable.sync(temporary)
        check()
        durable.move(temporary, folder / snapshot.name)
    finally:
        temporary.unlink(missing_ok=True)
    return size


def prune(folder: Path, keep: Iterable[Snapshot]) -> None:
    """Remove all others, and what half-written ones left."""
    kept = {each.name for each in keep}
    for name in os.listdir(folder):
        if name not in kept and (Snapshot.parse(name) or name.startswith(_TEMPORARY)):
            with suppress(FileNotFoundError):
                (folder / name).unlink()
