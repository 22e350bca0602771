"""The layers of a user, `sha256-<hex>.1.layer`, in a folder beside their images.

As images they are whole or not there, made by one pull while others wait (see `cache`). The digest is the one that a
manifest calls a layer by: what a registry sends for it has been compared with it.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from isthmus.images.archive import Entry
from isthmus.images.cache import Cache
from isthmus.images.store import packing
from isthmus.images.store.packing import DamagedError, Layer

# In the folder of images.
FOLDER = ".layers"
# The number is that of what such files hold.
_SUFFIX = ".1.layer"

_log = logging.getLogger(__name__)


def file_name(digest: str) -> str:
    """Return what a layer is called."""
    return f"{digest.replace(':', '-')}{_SUFFIX}"


class Store(Cache):
    """A folder of layers that its owner alone reads.

    Args:
        images: the folder of images.

    Raises:
        OSError: it is no folder, or another user's.
    """

    def __init__(self, images: Path) -> None:
        super().__init__(images / FOLDER)

    def path(self, digest: str) -> Path:
        """Return where a layer is, or will be."""
        return self.folder / file_name(digest)

    def find(self, digest: str) -> Layer | None:
        """Open a layer; None where there is none. One that is damaged goes, so that it is downloaded again.

        Raises:
            OSError: it cannot be read.
        """
        path = self.path(digest)
        try:
            layer = Layer(path)
        except FileNotFoundError:
            return None
        except DamagedError as error:
            _log.warning("%s is removed: %s", path, error)
            path.unlink(missing_ok=True)
            return None
        self.use(digest)
        return layer

    def add(self, digest: str, entries: Iterable[Entry], wanted: Callable[[], None], *, alone: bool) -> Layer:
        """Keep a layer, and open it.

        Args:
            digest: of the layer.
            entries: what it holds.
            wanted: called now and then; raises where nobody waits for it any more.
            alone: whether nobody else keeps it now.

        Raises:
            OSError: it cannot be read or written.
        """
        with self.making(digest, alone=alone) as partial:
            with partial.open("xb") as file:
                packing.write(entries, file, wanted)
            try:
                # Before it has its name, by which another pull could remove it.
                return Layer(partial)
            except DamagedError as error:
                raise OSError(errno.EIO, f"it is not what was written: {error}", str(partial)) from error

    def clear(self) -> None:
        """Remove all layers; who reads one keeps it open."""
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with suppress(OSError):
                path.unlink()
