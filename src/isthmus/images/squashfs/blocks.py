"""File content as squashfs has it: blocks of 128 KiB, each compressed by itself, and fragments of many small files.

No block knows where it lies, so that it can be copied from one squashfs into another.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from backports import zstd

from isthmus.clients.squashfs import LEVEL

SIZE = 1 << 17
# Where a file has none.
NO_FRAGMENT = 0xFFFFFFFF
# Of the word that says how long a block is: it is stored as it is.
_PLAIN = 1 << 24
# More than one reader can feed.
_MOST_THREADS = 16
# Blocks that wait for one thread, so that a large file is not read into memory.
_WAITING = 4
# Of smaller files equal ones are not looked for: in a fragment they compress to nothing.
_WORTH = 4096


class Sink(Protocol):
    """What is written from its beginning to its end."""

    def write(self, content: bytes, /) -> int:
        """Write all of it."""

    def tell(self) -> int:
        """Return how much is written."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A block that holds several small files.

    Attributes:
        start: where it lies in its file.
        word: how long it is there, and whether it is compressed.
    """

    start: int
    word: int


@dataclass(slots=True)
class Blocks:
    """Where the content of a file lies.

    Attributes:
        size: of the content, bytes.
        start: of the first block, in the file that holds it.
        fragment: the number of the fragment that a small file lies in; NO_FRAGMENT for none.
        offset: in the uncompressed fragment.
        words: of each block, how long it is there, and whether it is compressed.
        layer: the number of the layer whose file holds it; 0 for the squashfs itself.
    """

    size: int
    start: int = 0
    fragment: int = NO_FRAGMENT
    offset: int = 0
    words: list[int] = field(default_factory=list)
    layer: int = 0

    @property
    def is_written(self) -> bool:
        """Whether all of it has its place."""
        return self.fragment != NO_FRAGMENT or len(self.words) * SIZE >= self.size


@dataclass(frozen=True, slots=True)
class _Alone:
    """A file of whose size there is no other yet."""

    path: str
    offset: int
    blocks: Blocks


def stored(word: int) -> int:
    """Return how many bytes a block takes."""
    return word & (_PLAIN - 1)


class Packer:
    """Writes content to a file, compressed by all processors, in the order in which it comes.

    Args:
        out: written from where it stands.
        wanted: called for each block; raises where nobody waits for it any more.
        fragments: that the file has already.

    Attributes:
        fragments: that the file has; all of them when it is finished.
    """

    def __init__(self, out: Sink, wanted: Callable[[], None], fragments: Iterable[Fragment] = ()) -> None:
        self.fragments = list(fragments)
        self._out, self._wanted = out, wanted
        self._position = out.tell()
        self._threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="pack")
        self._waiting: deque[tuple[Future[tuple[bytes, int]], Blocks | None]] = deque()
        self._small = bytearray()
        self._descriptors: dict[str, int] = {}
        # By size: a file, or by checksum the several of one size, since most have theirs alone.
        self._seen: dict[int, _Alone | dict[bytes, Blocks]] = {}
        self._count = len(self.fragments)

    def close(self) -> None:
        """End what still works."""
        self._pool.shutdown(cancel_futures=True)
        for each in self._descriptors.values():
            os.close(each)

    def add(self, path: str, offset: int, size: int) -> Blocks:
        """Take content, once of equal files; where it lies is known when `is_written`, after `finish` at the latest.

        Args:
            path: of the file that it is in.
            offset: where it begins there.
            size: of the content, bytes.

        Raises:
            OSError: it cannot be read, or another not written.
        """
        if size < _WORTH:
            return self._pack(path, offset, size)
        if size not in self._seen:
            blocks = self._pack(path, offset, size)
            self._seen[size] = _Alone(path, offset, blocks)
            return blocks
        known = self._seen[size]
        if isinstance(known, _Alone):
            known = self._seen[size] = {self._sum(known.path, known.offset, size): known.blocks}
        digest = self._sum(path, offset, size)
        if digest not in known:
            known[digest] = self._pack(path, offset, size)
        return known[digest]

    def finish(self) -> None:
        """Write all that waits.

        Raises:
            OSError: it cannot be written.
        """
        self._end_fragment()
        while self._waiting:
            self._write()

    def _pack(self, path: str, offset: int, size: int) -> Blocks:
        blocks = Blocks(size)
        if 0 < size < SIZE:
            if len(self._small) + size > SIZE:
                self._end_fragment()
            blocks.fragment, blocks.offset = self._count, len(self._small)
            self._small += self._read(path, offset, size)
        else:
            for begin in range(0, size, SIZE):
                self._put(self._read(path, offset + begin, min(SIZE, size - begin)), blocks)
        return blocks

    def _sum(self, path: str, offset: int, size: int) -> bytes:
        found = hashlib.sha256()
        for begin in range(0, size, SIZE):
            found.update(self._read(path, offset + begin, min(SIZE, size - begin)))
        return found.digest()

    def _read(self, path: str, offset: int, size: int) -> bytes:
        if path not in self._descriptors:
            self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        content = os.pread(self._descriptors[path], size, offset)
        if len(content) != size:
            raise OSError(errno.EIO, "it ended too early", path)
        return content

    def _end_fragment(self) -> None:
        if self._small:
            self._put(bytes(self._small), None)
            self._small.clear()
            self._count += 1

    def _put(self, content: bytes, blocks: Blocks | None) -> None:
        self._wanted()
        self._waiting.append((self._pool.submit(compressed, content, _PLAIN), blocks))
        if len(self._waiting) > _WAITING * self._threads:
            self._write()

    def _write(self) -> None:
        future, blocks = self._waiting.popleft()
        content, word = future.result()
        if blocks is None:
            self.fragments.append(Fragment(self._position, word))
        else:
            if not blocks.words:
                blocks.start = self._position
            blocks.words.append(word)
        self._out.write(content)
        self._position += len(content)


def compressed(content: bytes, plain: int) -> tuple[bytes, int]:
    """Return a block as it is stored, and its word.

    Args:
        content: uncompressed.
        plain: the bit of the word that says so where compression gains nothing.
    """
    smaller = zstd.compress(content, LEVEL)
    if len(smaller) < len(content):
        return smaller, len(smaller)
    return content, len(content) | plain
