"""A layer as one file: content in blocks as a squashfs has it, then an index, then a footer.

    blocks | fragment table | index: JSON lines, compressed | footer: magic, where the two begin, SHA-256 of all before

A line of the index is an entry as the layer's tar has it, in its order. So layers are merged from such files as they
are from tars, and what an image takes from one is copied without being unpacked.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from backports import zstd

from isthmus.clients.squashfs import LEVEL
from isthmus.images.archive import Entry
from isthmus.images.squashfs.blocks import Blocks, Fragment, Packer
from isthmus.images.squashfs.copying import Origin
from isthmus.images.tree import Kind

_MAGIC = b"isthlay1"
_FOOTER = struct.Struct("<8sQQ32s")
_FRAGMENT = struct.Struct("<QI")
_CHUNK = 1 << 20


class DamagedError(Exception):
    """A file that is not what was written."""


def write(entries: Iterable[Entry], out: BinaryIO, wanted: Callable[[], None]) -> None:
    """Write a layer.

    Args:
        entries: with plain content.
        out: empty.
        wanted: called now and then; raises where nobody waits for it any more.

    Raises:
        OSError: content cannot be read, or `out` written.
    """
    summed, index = _Summed(out), _Index()
    with closing(Packer(summed, wanted)) as packer:
        for entry in entries:
            source = entry.source
            index.add(entry, packer.add(source.path, source.offset, source.size) if source else None)
        packer.finish()
    fragments_at = summed.tell()
    summed.write(b"".join(_FRAGMENT.pack(each.start, each.word) for each in packer.fragments))
    index_at = summed.tell()
    summed.write(index.finish())
    out.write(_FOOTER.pack(_MAGIC, fragments_at, index_at, summed.digest()))
    out.flush()


class _Summed:
    """A file whose content is summed up on its way."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._sum, self._size = out, hashlib.sha256(), 0

    def write(self, content: bytes, /) -> int:
        self._sum.update(content)
        self._size += len(content)
        return self._out.write(content)

    def tell(self) -> int:
        return self._size

    def digest(self) -> bytes:
        return self._sum.digest()


class _Index:
    """Lines, written as soon as it is known where the content of their entries lies."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Entry, Blocks | None]] = deque()
        self._compressor = zstd.ZstdCompressor(LEVEL)
        self._written = bytearray()

    def add(self, entry: Entry, blocks: Blocks | None) -> None:
        self._waiting.append((entry, blocks))
        self._write()

    def finish(self) -> bytes:
        self._write()
        return bytes(self._written + self._compressor.flush())

    def _write(self) -> None:
        while self._waiting and ((blocks := self._waiting[0][1]) is None or blocks.is_written):
            entry, _ = self._waiting.popleft()
            kind = entry.kind.value if entry.kind else None
            place = blocks and (blocks.size, blocks.start, blocks.fragment, blocks.offset, *blocks.words)
            head = entry.name, entry.mode, entry.uid, entry.gid, entry.mtime_s, entry.target
            line = json.dumps([*head, kind, place], separators=(",", ":")) + "\n"
            self._written += self._compressor.compress(line.encode())


class Layer:
    """An open file of a layer, whole as it was written.

    Args:
        path: of the file.

    Attributes:
        origin: who has the layer's blocks.

    Raises:
        DamagedError: it is not what was written.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        # What is no file fails instead of waiting for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fragments, self._index = _read(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self.origin = Origin(descriptor, [Fragment(*each) for each in _FRAGMENT.iter_unpack(fragments)])

    def close(self) -> None:
        """Close it."""
        os.close(self.origin.descriptor)

    def entries(self, number: int) -> Iterator[Entry]:
        """Yield the entries.

        Args:
            number: of the layer in its image, for their blocks.
        """
        with zstd.open(io.BytesIO(self._index), "rb") as lines:
            for line in lines:
                name, mode, uid, gid, mtime_s, target, kind, place = json.loads(line)
                blocks = None
                if place:
                    size, start, fragment, offset, *words = place
                    blocks = Blocks(size, start, fragment, offset, words, number)
                yield Entry(name, mode, uid, gid, mtime_s, target, Kind(kind) if kind else None, None, blocks)


def _read(descriptor: int) -> tuple[bytes, bytes]:
    """Return the fragment table and the index of a file that is what was written.

    Raises:
        DamagedError: it is not.
    """
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise DamagedError("it is no file")
    end = found.st_size - _FOOTER.size
    footer = os.pread(descriptor, _FOOTER.size, max(end, 0))
    if end < 0 or not footer.startswith(_MAGIC):
        raise DamagedError("it has no footer")
    _, fragments_at, index_at, digest = _FOOTER.unpack(footer)
    summed, position = hashlib.sha256(), 0
    while content := os.pread(descriptor, min(_CHUNK, end - position), position):
        summed.update(content)
        position += len(content)
    if summed.digest() != digest:
        raise DamagedError("it has another checksum")
    return os.pread(descriptor, index_at - fragments_at, fragments_at), os.pread(descriptor, end - index_at, index_at)
