"""The user's images, `sha256-<hex>.squashfs`, on a home that all nodes share.

A file of that name is whole: it is written under a name of its own, flushed, then renamed. Whoever makes it holds
a lock that other nodes see, so a name that is not whole yet and not locked is a leftover.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from isthmus.support import durable

# 20 waiting pulls shall not keep a file server busy.
_POLL_S = 0.2


class Cache:
    """A folder of images that its owner alone reads.

    Args:
        folder: made with its parent when missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for each in (folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)

    def path(self, digest: str) -> Path:
        """Return where an image is, or will be."""
        return self.folder / f"{digest.replace(':', '-')}.squashfs"

    @contextmanager
    def lock(self, digest: str, wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock of an image, on whichever node; `wait` is called when it is another's."""
        lock = FileLock(self.folder / f".{self.path(digest).stem}.lock", poll_interval=_POLL_S)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            wait()
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def making(self, digest: str) -> Iterator[Path]:
        """Give the path to write an image to; it becomes the image at the end, and is gone after an error."""
        partial = self.folder / f".{self.path(digest).name}.part"
        partial.unlink(missing_ok=True)
        try:
            yield partial
            durable.move(partial, self.path(digest))
        finally:
            partial.unlink(missing_ok=True)


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
