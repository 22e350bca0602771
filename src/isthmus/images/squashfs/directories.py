"""What a directory of a squashfs lists: names in the order of their bytes, in runs whose inodes lie close together.

A run has a header and up to 256 names. Where a list is longer than a block of metadata, an index says which name is the
first of the run that a block begins with or soon after, so that a name is found without reading all before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from isthmus.images.squashfs import tables
from isthmus.images.squashfs.tables import Table

# In a run.
_MOST_NAMES = 256
# How far an inode's number may be from that of its run's first: a word with a sign.
_FURTHEST = (1 << 15) - 1
# The count of an index is a word.
_MOST_INDEXED = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class Name:
    """One of a directory.

    Attributes:
        name: its bytes.
        kind: the number of a basic inode of its kind.
        number: of the inode.
        place: of the inode: its block, and its offset there.
    """

    name: bytes
    kind: int
    number: int
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Listing:
    """A written list.

    Attributes:
        place: where it begins: its block, and its offset there.
        size: in bytes, uncompressed.
        index: rows as they follow the directory's inode.
    """

    place: tuple[int, int]
    size: int
    index: list[bytes]


def write(table: Table, names: Iterable[Name]) -> Listing:
    """Write a list.

    Args:
        table: of directories.
        names: of one, in the order of their bytes.
    """
    place, size, index = table.position, 0, list[bytes]()
    indexed = place[0]
    for run in _runs(names):
        at, first = table.position[0], run[0]
        if at != indexed and len(index) < _MOST_INDEXED:
            index.append(struct.pack("<III", size, at, len(first.name) - 1) + first.name)
            indexed = at
        content = _run(run)
        table.add(content)
        size += len(content)
    return Listing(place, size, index)


def _runs(names: Iterable[Name]) -> Iterator[list[Name]]:
    run, size = list[Name](), 0
    for each in names:
        if run and (
            len(run) == _MOST_NAMES
            or each.place[0] != run[0].place[0]
            or abs(each.number - run[0].number) > _FURTHEST
            or size >= tables.SIZE
        ):
            yield run
            run, size = [], 0
        run.append(each)
        size += 8 + len(each.name)
    if run:
        yield run


def _run(run: list[Name]) -> bytes:
    first = run[0]
    content = bytearray(struct.pack("<III", len(run) - 1, first.place[0], first.number))
    for each in run:
        difference = each.number - first.number
        content += struct.pack("<HhHH", each.place[1], difference, each.kind, len(each.name) - 1)
        content += each.name
    return bytes(content)
