"""The folder of a user's cluster on a node's own disk, in a place that everybody may write to.

A part of its name lies in the user's home and cannot be guessed, so nobody else makes it first; a user who has seen it
still cannot make a folder that is the user's. Owner and mode are looked at, of the folder itself and not of what a
link leads to, and the place must not let others rename what is not theirs.

The writer holds a lock of the folder itself: systemd-tmpfiles, which clears such places of old files,
passes over what is locked (tmpfiles.d(5)).
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from shutil import rmtree

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.support import durable

_NAME_BYTES = 8


@dataclass(frozen=True, slots=True)
class Disk:
    """The files below `folder`."""

    folder: Path

    @property
    def etcd(self) -> Path:
        """The data of etcd."""
        return self.folder / "etcd"

    @property
    def stamp(self) -> Path:
        """Which claim the data belong to."""
        return self.folder / "stamp"

    def belongs_to(self, claim_id: str) -> bool:
        """Return whether these are the data of a claim, and there."""
        with suppress(FileNotFoundError):
            return self.stamp.read_text(encoding="utf-8") == claim_id and (self.etcd / "member").is_dir()
        return False


def of(layout: Layout, parent: Path) -> Disk:
    """Return the folder of this cluster on this node, made if missing.

    Args:
        layout: the cluster's files on the home.
        parent: a folder of this node that everybody may write to.

    Raises:
        ControlPlaneError: what is there is another's, or the place is not safe.
    """
    _check_parent(parent)
    folder = parent / (_prefix() + _name(layout))
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _check(folder)
    return Disk(folder)


def sweep(parent: Path, but: Disk | None) -> list[Path]:
    """Remove what clusters of this user that are gone left on this node; return the folders.

    One that is locked is still written to, and stays.
    """
    removed = []
    for folder in parent.glob(f"{_prefix()}*"):
        if but is None or folder != but.folder:
            # Another's folder may have such a name; it is not looked into.
            with suppress(ControlPlaneError, OSError), _locked(folder):
                rmtree(folder)
                removed.append(folder)
    return removed


def remove(layout: Layout, parent: Path) -> list[Path]:
    """Remove this cluster's own folder from this node; return it, if it was there and nobody writes to it."""
    removed = []
    if layout.disk_name.exists():
        folder = parent / (_prefix() + _name(layout))
        with suppress(ControlPlaneError, OSError), _locked(folder):
            rmtree(folder)
            removed.append(folder)
    return removed


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    _check(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _prefix() -> str:
    return f"isthmus-{os.getuid()}-"


def _name(layout: Layout) -> str:
    """Return the part of the name that is kept in the home; of two that make it at once, one wins (link(2))."""
    layout.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not layout.disk_name.exists():
        temporary = layout.folder / f".disk-name.{token_hex(_NAME_BYTES)}"
        durable.write(temporary, token_hex(_NAME_BYTES), 0o600)
        try:
            with suppress(FileExistsError):
                os.link(temporary, layout.disk_name)
        finally:
            temporary.unlink()
    name = layout.disk_name.read_text(encoding="utf-8")
    if not name.isalnum():
        raise ControlPlaneError(f"{layout.disk_name} is no name; remove it, and the newest snapshot is used")
    return name


def _check_parent(parent: Path) -> None:
    try:
        status = parent.stat()
    except OSError as error:
        raise ControlPlaneError(f"{parent}: {error.strerror}; {_elsewhere()}") from error
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid not in {0, os.getuid()}
        or (is_shared and not _is_sticky(status))
    ):
        raise ControlPlaneError(f"{parent} lets others rename your files (mode {status.st_mode:o}); {_elsewhere()}")


def _check(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ControlPlaneError(f"{folder} is not yours; an admin removes it, or: {_elsewhere()}")
    if status.st_mode & 0o077:
        raise ControlPlaneError(f"{folder} is open to others, who may have changed it; remove it, or: {_elsewhere()}")


def _is_sticky(status: os.stat_result) -> bool:
    return bool(status.st_mode & stat.S_ISVTX)


def _elsewhere() -> str:
    return "`isthmus up --data home` keeps the data in your home"
