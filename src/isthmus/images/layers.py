"""An image's layers, read into one tree (OCI image specification, layer.md).

Only their headers are read: content stays where it lies, in the layers' plain tar files. Ids above those that a pod can
have become nobody's. Device files are left out: a container has its own /dev. Extended attributes are left out, too:
what they would grant holds for the node's root alone.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from isthmus.images.errors import HostileImageError
from isthmus.images.tree import Inode, Kind, Source, Tree, TreeError
from isthmus.model.image_accounts import IDS
from isthmus.model.images import Reference

NOBODY = 65534
# Of all layers together; the largest images of machine learning have a quarter.
MAX_FILES = 2_000_000
# A name has 4 KiB at most (path_resolution(7)); the rest of an extended header are attributes.
MAX_HEADER = 1 << 20
_HIDDEN, _OPAQUE = ".wh.", ".wh..wh..opq"
_KINDS = {tarfile.DIRTYPE: Kind.FOLDER, tarfile.SYMTYPE: Kind.LINK, tarfile.FIFOTYPE: Kind.FIFO}


@dataclass(frozen=True, slots=True)
class Merged:
    """All layers of an image.

    Attributes:
        tree: what they make.
        strangers: how many files belong to an id that a pod does not have, and are nobody's now.
    """

    tree: Tree
    strangers: int


def merge(image: Reference, layers: list[Path], wanted: Callable[[], None], *, root_alone: bool = False) -> Merged:
    """Put layers on one another.

    Args:
        image: for messages.
        layers: tar files, the lowest first.
        wanted: called now and then; raises where nobody waits for the image any more.
        root_alone: give all to root, for containers that know nobody else.

    Raises:
        HostileImageError: a layer is no archive, or a name in it leads nowhere.
        OSError: a layer cannot be read.
    """
    reader = _Reader(image, wanted, root_alone=root_alone)
    for number, path in enumerate(layers, start=1):
        reader.layer(number, path)
    return Merged(reader.tree, reader.strangers)


class _Bounded:
    """A layer of which no more than an honest header is read at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self.file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


class _Reader:
    def __init__(self, image: Reference, wanted: Callable[[], None], *, root_alone: bool) -> None:
        self.tree, self.strangers, self.count = Tree(), 0, 0
        self._image, self._wanted, self._root_alone = image, wanted, root_alone

    def layer(self, number: int, path: Path) -> None:
        """Read one."""
        with path.open("rb") as file:
            size = path.stat().st_size
            if not size:
                return
            try:
                with tarfile.open(fileobj=cast("IO[bytes]", _Bounded(file)), mode="r:") as archive:
                    while (entry := archive.next()) is not None:
                        # It keeps each entry that it has read.
                        cast("Any", archive).members.clear()
                        self._count(number)
                        self._entry(entry, number, path, size)
                    self._check_end(file, cast("Any", archive).offset)
            except TreeError as error:
                raise self._hostile(number, str(error)) from error
            # What is no number, or a negative one, too.
            except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
                raise self._hostile(number, f"it is no archive ({error})") from error

    @staticmethod
    def _check_end(file: IO[bytes], offset: int) -> None:
        # What is no header ends an archive for tarfile, too.
        file.seek(offset)
        if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
            raise tarfile.ReadError(f"what is at {offset} is no header")

    def _count(self, number: int) -> None:
        self.count += 1
        if self.count > MAX_FILES:
            raise self._hostile(number, f"it has more than {MAX_FILES} files")
        if self.count % 1000 == 0:
            self._wanted()

    def _entry(self, entry: tarfile.TarInfo, number: int, path: Path, size: int) -> None:
        folder, name = posixpath.split(posixpath.normpath(f"/{entry.name}"))
        if name == _OPAQUE:
            self.tree.hide(folder, number)
        elif name.startswith(_HIDDEN):
            # Others that begin so are notes of aufs.
            if not name.startswith(_HIDDEN * 2):
                self.tree.remove(posixpath.join(folder, name.removeprefix(_HIDDEN)))
        elif entry.islnk():
            known = self.tree.find(entry.linkname)
            if known.kind is Kind.FOLDER:
                raise TreeError(f"{entry.name!r} is a hard link to a folder")
            known.layer = number
            self.tree.put(entry.name, known)
        elif inode := self._inode(entry, number, path, size):
            self.tree.put(entry.name, inode)

    def _inode(self, entry: tarfile.TarInfo, number: int, path: Path, size: int) -> Inode | None:
        kind = Kind.FILE if entry.isreg() else _KINDS.get(entry.type)
        if kind is None:
            return None
        source = None
        if kind is Kind.FILE:
            if entry.issparse():
                raise TreeError(f"{entry.name!r} is a sparse file, of which layers know nothing")
            if not 0 <= entry.size <= size - entry.offset_data:
                raise TreeError(f"{entry.name!r} is longer than its layer")
            source = Source(str(path), entry.offset_data, entry.size)
        uid, gid = (0, 0) if self._root_alone else (self._id(entry.uid), self._id(entry.gid))
        self.strangers += not self._root_alone and (uid, gid) != (entry.uid, entry.gid)
        mtime_s = min(max(0, int(entry.mtime)), (1 << 32) - 1)
        return Inode(kind, entry.mode & 0o7777, uid, gid, mtime_s, entry.linkname, source, number)

    @staticmethod
    def _id(number: int) -> int:
        return number if 0 <= number < IDS else NOBODY

    def _hostile(self, number: int, why: str) -> HostileImageError:
        return HostileImageError(f"{self._image} is refused: in layer {number}, {why}; ask whoever made the image")
