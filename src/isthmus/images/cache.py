"""The user's images, `sha256-<hex>.2.squashfs`, on a home that all nodes share.

A file of that name is whole: it is written under a name of its own, flushed, then renamed. Its writer holds
a lock that other nodes see, so a name that is not whole yet and not locked is a leftover.

On a home without locks each pull works for itself, under a name that no other has: what may be lost is work, not an
image. The first writer gives the image its name, and the file stays: a node that has it open would lose it to another.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import time

from isthmus.images.errors import ImageError
from isthmus.model.images import file_name
from isthmus.support import durable, locks

# Nobody writes to a file that is older, s: packing an image takes minutes.
_LEFT_S = 24 * 3600.0
# How exact the time of an image's last use is, s.
_NOTED_S = 900.0


class Cache:
    """A folder of images that its owner alone reads.

    Args:
        folder: made with its parent when missing.

    Raises:
        OSError: it is no folder, or another user's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)
            # A link to a folder of one's own is a way to have images on another disk.
            if each.stat().st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it is another user's", str(each))
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(0o700)

    def path(self, digest: str) -> Path:
        """Return where an image is, or will be."""
        return self.folder / file_name(digest)

    def has(self, digest: str) -> bool:
        """Return whether an image is there.

        Raises:
            OSError: something else has its name.
        """
        path = self.path(digest)
        try:
            _check_file(path)
        except FileNotFoundError:
            return False
        return True

    def use(self, digest: str) -> None:
        """Note, by its file's time, that an image is used; a home that cannot be written keeps nobody from it."""
        with suppress(OSError):
            # A change of a file costs a file server.
            if self.path(digest).stat().st_mtime < time() - _NOTED_S:
                os.utime(self.path(digest))

    @contextmanager
    def lock(self, digest: str, wait: Callable[[], None]) -> Iterator[bool]:
        """Hold the lock of an image, on whichever node; False where there are no locks.

        Args:
            digest: of the image.
            wait: called when the lock is another's.
        """
        # Not removed: who waits for it would not see the next one's.
        path = self.folder / f".{digest.replace(':', '-')}.lock"
        # A FIFO of that name fails instead of waiting for a reader.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(path, flags, 0o600), "a") as file:
            locked = locks.take(file.fileno())
            if locked is False:
                wait()
                locked = locks.take(file.fileno(), wait=True)
            yield locked is True

    @contextmanager
    def making(self, digest: str, *, alone: bool = True) -> Iterator[Path]:
        """Give the path to write an image to; it becomes the image at the end, and is gone after an error.

        Args:
            digest: of the image.
            alone: whether nobody else makes it now.
        """
        partial = self._partial(digest, "" if alone else f".{token_hex(8)}")
        self._drop_leftovers(digest, alone=alone)
        try:
            yield partial
            if alone:
                durable.move(partial, self.path(digest))
            else:
                self._name(partial, digest)
        finally:
            partial.unlink(missing_ok=True)

    def _partial(self, digest: str, token: str) -> Path:
        return self.folder / f".{self.path(digest).name}{token}.part"

    def _name(self, partial: Path, digest: str) -> None:
        durable.sync(partial)
        with suppress(FileExistsError):
            self.path(digest).hardlink_to(partial)
        durable.sync(self.folder)

    def _drop_leftovers(self, digest: str, *, alone: bool) -> None:
        if alone:
            self._partial(digest, "").unlink(missing_ok=True)
        # Other nodes may be without locks where this one has them.
        for path in self.folder.glob(self._partial(digest, "*").name):
            with suppress(FileNotFoundError):
                if not is_being_written(path):
                    path.unlink()


def is_being_written(partial: Path) -> bool:
    """Return whether a file that is not whole may yet be.

    Raises:
        FileNotFoundError: it is no more.
    """
    return partial.stat().st_mtime >= time() - _LEFT_S


def check_credentials(authfile: Path | None) -> None:
    """Look at a file of credentials before a program waits for it; skopeo reports a missing one.

    Raises:
        ImageError: it cannot be read, or is no file.
    """
    try:
        if authfile is not None and authfile.exists():
            _check_file(authfile)
    except OSError as error:
        reason = f"{authfile}: {error.strerror}"
        raise ImageError(f"{reason}; remove it, and log in with `apptainer registry login`") from error


def _check_file(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no file", str(path))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Give a folder for an unpacked image, in which folders may be closed even to their owner; gone at the end."""
    with durable.workspace(parent, "isthmus-pull") as folder:
        try:
            yield folder
        finally:
            _open(folder)


def _open(folder: Path) -> None:
    for parent, folders, _ in os.walk(folder):
        for each in (Path(parent, name) for name in folders):
            if not each.is_symlink():
                each.chmod(0o700)
