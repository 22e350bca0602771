"""Blocks from the files that have them into a new one, as they are.

The file system does the copying where it can: file servers within themselves, and XFS and Btrfs by sharing what both
files hold (copy_file_range(2)), for which a copy has to begin as far into a page as what it is made of.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from isthmus.images.squashfs.blocks import NO_FRAGMENT, Blocks, Fragment, stored

# File systems share in units of that, bytes.
_PAGE = 4096
# What is smaller is not worth the room that its alignment takes.
_ALIGNED = 1 << 16
_CHUNK = 1 << 26
_CANNOT = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM)


@dataclass(frozen=True, slots=True)
class Origin:
    """A file that has blocks.

    Attributes:
        descriptor: of the file, open for reading.
        fragments: that it has.
    """

    descriptor: int
    fragments: list[Fragment]


class Copied:
    """Blocks in their new place.

    Args:
        origins: by the numbers of layers.
        contents: what is wanted of them.
        target: a descriptor.
        position: where the target's blocks begin.
        wanted: called now and then; raises where nobody waits for it any more.

    Attributes:
        fragments: the target's.
        position: where the target ends.

    Raises:
        OSError: they cannot be copied.
    """

    def __init__(
        self,
        origins: Mapping[int, Origin],
        contents: Iterable[Blocks],
        target: int,
        position: int,
        wanted: Callable[[], None],
    ) -> None:
        self.fragments: list[Fragment] = []
        self.position = position
        self._target, self._wanted = target, wanted
        self._runs: dict[int, list[tuple[int, int]]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        by_layer: dict[int, list[Blocks]] = {}
        for blocks in contents:
            by_layer.setdefault(blocks.layer, []).append(blocks)
        for layer, each in sorted(by_layer.items()):
            self._copy(layer, origins[layer], each)

    def moved(self, blocks: Blocks) -> Blocks:
        """Return where blocks lie in the target."""
        if blocks.fragment != NO_FRAGMENT:
            number = self._numbers[blocks.layer, blocks.fragment]
            return Blocks(blocks.size, 0, number, blocks.offset)
        start = self._moved(blocks.layer, blocks.start) if blocks.words else 0
        return Blocks(blocks.size, start, words=blocks.words)

    def _copy(self, layer: int, origin: Origin, contents: list[Blocks]) -> None:
        fragments = sorted({blocks.fragment for blocks in contents} - {NO_FRAGMENT})
        wanted = {blocks.start: sum(map(stored, blocks.words)) for blocks in contents if blocks.words}
        wanted |= {origin.fragments[each].start: stored(origin.fragments[each].word) for each in fragments}
        runs = self._runs[layer] = []
        for start, end in _joined(wanted):
            if end - start >= _ALIGNED:
                self.position += (start - self.position) % _PAGE
            runs.append((start, self.position))
            self._copy_run(origin.descriptor, start, end)
        for each in fragments:
            self._numbers[layer, each] = len(self.fragments)
            old = origin.fragments[each]
            self.fragments.append(Fragment(self._moved(layer, old.start), old.word))

    def _moved(self, layer: int, start: int) -> int:
        runs = self._runs[layer]
        before, after = runs[bisect_right(runs, start, key=lambda run: run[0]) - 1]
        return start - before + after

    def _copy_run(self, source: int, start: int, end: int) -> None:
        # What begins with a page can be shared.
        aligned = min(end, start + -start % _PAGE)
        for begin, until in ((start, aligned), (aligned, end)):
            while begin < until:
                self._wanted()
                count = copy(source, self._target, min(until - begin, _CHUNK), begin, self.position)
                begin += count
                self.position += count


def copy(source: int, target: int, count: int, begin: int, position: int) -> int:
    """Copy some of `count` bytes from one file's offset to another's; return how many.

    Raises:
        OSError: they cannot be copied, or the source is shorter.
    """
    try:
        done = os.copy_file_range(source, target, count, begin, position)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        done = 0
    if not done:
        # Between file systems, or on one that has only this.
        os.lseek(target, position, os.SEEK_SET)
        done = os.sendfile(target, source, begin, count)
    if not done:
        raise OSError(errno.EIO, "a file ended too early")
    return done


def _joined(wanted: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return where runs of adjacent blocks begin and end."""
    runs: list[tuple[int, int]] = []
    for start, size in sorted(wanted.items()):
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], start + size)
        else:
            runs.append((start, start + size))
    return runs
