"""A layer's tar file as a list of entries (OCI image specification, layer.md).

Only headers are read: content stays where it lies. Device files are left out: a container has its own /dev. Extended
attributes are left out, too: what they would grant holds for the node's root alone.
"""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from isthmus.images.tree import Kind, Source, TreeError

if TYPE_CHECKING:
    from isthmus.images.squashfs.blocks import Blocks

# A name has 4 KiB at most (path_resolution(7)); the rest of an extended header are attributes.
MAX_HEADER = 1 << 20
# Files of such names say what a layer takes away.
HIDDEN = ".wh."
_KINDS = {tarfile.DIRTYPE: Kind.FOLDER, tarfile.SYMTYPE: Kind.LINK, tarfile.FIFOTYPE: Kind.FIFO}


@dataclass(slots=True)
class Entry:
    """One of a layer; a file, a note that one of a layer below is hidden, or one more name of a file.

    Attributes:
        name: where it belongs; a stranger's.
        mode: twelve bits.
        uid: whom it belongs to, as the layer says.
        gid: its group, as the layer says.
        mtime_s: since 1970.
        target: of a link, or of which file it is one more name.
        kind: what it is; None for one more name.
        source: a file's plain content.
        blocks: a file's content as a squashfs has it, in place of a source.
    """

    name: str
    mode: int
    uid: int
    gid: int
    mtime_s: int
    target: str
    kind: Kind | None
    source: Source | None = None
    blocks: Blocks | None = None


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a layer.

    Raises:
        TreeError: an entry is none of a layer.
        ValueError, OverflowError, EOFError, tarfile.TarError: the layer is no archive.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        if not size:
            return
        with tarfile.open(fileobj=cast("IO[bytes]", _Bounded(file)), mode="r:") as archive:
            while (header := archive.next()) is not None:
                # It keeps each entry that it has read.
                cast("Any", archive).members.clear()
                if found := _entry(header, path, size):
                    yield found
            _check_end(file, cast("Any", archive).offset)


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


def _check_end(file: IO[bytes], offset: int) -> None:
    # What is no header ends an archive for tarfile, too.
    file.seek(offset)
    if file.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise tarfile.ReadError(f"what is at {offset} is no header")


def _entry(header: tarfile.TarInfo, path: Path, size: int) -> Entry | None:
    is_note = posixpath.basename(posixpath.normpath(f"/{header.name}")).startswith(HIDDEN)
    kind = Kind.FILE if is_note or header.isreg() else _KINDS.get(header.type)
    if kind is None and not header.islnk():
        return None
    source = None
    if kind is Kind.FILE and not is_note:
        if header.issparse():
            raise TreeError(f"{header.name!r} is a sparse file, of which layers know nothing")
        if not 0 <= header.size <= size - header.offset_data:
            raise TreeError(f"{header.name!r} is longer than its layer")
        source = Source(str(path), header.offset_data, header.size)
    mtime_s = min(max(0, int(header.mtime)), (1 << 32) - 1)
    mode = header.mode & 0o7777
    return Entry(header.name, mode, header.uid, header.gid, mtime_s, header.linkname, kind, source)
