"""Metadata of a squashfs: in blocks of 8 KiB, each compressed by itself, after a word that says how long it is.

What lies in a table is found by the place of its block, from the table's beginning, and by its offset in that block
when that is uncompressed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO

from isthmus.images.squashfs.blocks import compressed

SIZE = 8192
# Of a block's word: it is stored as it is.
_PLAIN = 1 << 15


class Table:
    """One that grows."""

    def __init__(self) -> None:
        self._blocks, self._open = bytearray(), bytearray()

    @property
    def position(self) -> tuple[int, int]:
        """Where comes what is added next: its block, and its offset there."""
        return len(self._blocks), len(self._open)

    def add(self, content: bytes) -> None:
        """Add what is found by its place."""
        self._open += content
        while len(self._open) >= SIZE:
            self._close(SIZE)

    def finish(self) -> bytes:
        """Return the table."""
        if self._open:
            self._close(len(self._open))
        return bytes(self._blocks)

    def _close(self, size: int) -> None:
        self._blocks += block(bytes(self._open[:size]))
        del self._open[:size]


def block(content: bytes) -> bytes:
    """Return one block of a table."""
    stored, word = compressed(content, _PLAIN)
    return struct.pack("<H", word) + stored


def write_list(out: BinaryIO, rows: Sequence[bytes]) -> int:
    """Write a table whose rows, all as long, are found by their number; return where the list of its blocks begins."""
    content, starts = b"".join(rows), []
    for offset in range(0, len(content), SIZE):
        starts.append(out.tell())
        out.write(block(content[offset : offset + SIZE]))
    begin = out.tell()
    out.write(struct.pack(f"<{len(starts)}Q", *starts))
    return begin
