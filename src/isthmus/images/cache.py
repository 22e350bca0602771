"""The user's images, `sha256-<hex>.squashfs`, on a home that all nodes share.

A file of that name is whole: it is written under a name of its own, flushed, then renamed. Whoever makes it holds
a lock that other nodes see, so a name that is not whole yet and not locked is a leftover.

On a home without locks each pull works for itself, under a name that no other has: what may be lost is work, not an
image. Whoever is first gives the image its name, and it stays: a node that has it open would lose it to another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import time

from isthmus.support import durable, locks

# Nobody writes to a file that is older, s: packing an image takes minutes.
_LEFT_S = 24 * 3600.0


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
    def lock(self, digest: str, wait: Callable[[], None]) -> Iterator[bool]:
        """Hold the lock of an image, on whichever node; False where there are no locks.

        Args:
            digest: of the image.
            wait: called when the lock is another's.
        """
        # Not removed: who waits for it would not see the next one's.
        with (self.folder / f".{self.path(digest).stem}.lock").open("a") as file:
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
                if path.stat().st_mtime < time() - _LEFT_S:
                    path.unlink()


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
