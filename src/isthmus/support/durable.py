"""Atomic and durable files: write, fsync, rename (rename(2), fsync(2))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp, mkstemp


def move(temporary: Path, path: Path) -> None:
    """Give a written file its name; after a crash the name holds the old content or the new, never a part.

    Args:
        temporary: the whole content, on the same file system.
        path: its name; what bears it already is replaced.
    """
    sync(temporary)
    temporary.replace(path)
    sync(path.parent)


def write(path: Path, content: str, mode: int = 0o644) -> None:
    """Write a small file in one step."""
    with _beside(path, content, mode) as temporary:
        move(temporary, path)


def create(path: Path, content: str, mode: int = 0o644) -> None:
    """Write a small file that is not there yet, in one step.

    Raises:
        FileExistsError: something has the name; it stays.
    """
    with _beside(path, content, mode) as temporary:
        sync(temporary)
        # Unlike rename(2) this replaces nothing.
        path.hardlink_to(temporary)
        sync(path.parent)


@contextmanager
def _beside(path: Path, content: str, mode: int) -> Iterator[Path]:
    """Give a file with the content in the folder of `path`; what is left of it is gone at the end."""
    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        temporary.chmod(mode)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def workspace(parent: Path, name: str) -> Iterator[Path]:
    """Give a new folder below `parent`, which is made if missing; it is gone at the end, whatever happened."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(dir=parent, prefix=f".{name}."))
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
