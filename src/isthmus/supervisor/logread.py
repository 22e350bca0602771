"""Reads a container's log as `kubectl logs` asks for it: tail, since, timestamps, limit, and following a live one."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import clock
from .logs import LogWriter

_CHUNK_BYTES = 1 << 15


@dataclass(frozen=True)
class Wanted:
    """What of a log is wanted; None is no bound."""

    follow: bool = False
    tail: int | None = None
    since_ns: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None

    @classmethod
    def read(cls, request: dict[str, Any]) -> Wanted:
        """Read a request.

        Raises:
            ValueError: `since` is no moment.
        """
        since = request.get("since")
        return cls(
            follow=bool(request.get("follow")),
            tail=request.get("tail"),
            since_ns=clock.nanoseconds(since) if since else None,
            timestamps=bool(request.get("timestamps")),
            limit_bytes=request.get("limit_bytes"),
        )


class Lines:
    """Turns records of the file into what a user reads; keeps whether a line goes on."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._begun = True

    def shown(self, record: bytes) -> bytes | None:
        """Return the text of a record, None for one that is not wanted or no record."""
        parts = record.rstrip(b"\n").split(b" ", 3)
        if len(parts) < 4:
            return None
        moment, _, mark, text = parts
        if self._wanted.since_ns is not None and _nanoseconds(moment) < self._wanted.since_ns:
            return None
        head = moment + b" " if self._wanted.timestamps and self._begun else b""
        self._begun = mark == b"F"
        return head + text + (b"\n" if self._begun else b"")


async def read(log: LogWriter, wanted: Wanted) -> AsyncIterator[bytes]:
    """Yield pieces of a log, and with `follow` what comes until it is closed."""
    left = wanted.limit_bytes
    async for piece in _pieces(log, wanted):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        if piece:
            yield piece
        if left == 0:
            return


async def _pieces(log: LogWriter, wanted: Wanted) -> AsyncIterator[bytes]:
    changed = asyncio.Event()
    log.listeners.add(changed.set)
    try:
        lines = Lines(wanted)
        place = _Place(log.path)
        records: Iterable[bytes] = (record for path in log.files[:-1] for record in path.read_bytes().splitlines())
        chosen = _shown(lines, (*records, *place.more()))
        for piece in _joined(chosen if wanted.tail is None else _last(chosen, wanted.tail)):
            yield piece
        while wanted.follow:
            closed = log.closed
            for piece in _joined(_shown(lines, place.more())):
                yield piece
            if closed:
                return
            await changed.wait()
            changed.clear()
    finally:
        log.listeners.discard(changed.set)


def _shown(lines: Lines, records: Iterable[bytes]) -> Iterator[bytes]:
    for record in records:
        text = lines.shown(record)
        if text is not None:
            yield text


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join lines, so that a long log is not a frame for each."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _last(pieces: Iterable[bytes], count: int) -> Iterable[bytes]:
    """Keep the last lines, whole ones."""
    whole: deque[bytes] = deque(maxlen=count)
    begun = b""
    for piece in pieces:
        begun += piece
        if begun.endswith(b"\n"):
            whole.append(begun)
            begun = b""
    return [*whole, begun] if begun else whole


class _Place:
    """How far a file was read; a new file of the same name begins at its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")

    def more(self) -> Iterator[bytes]:
        yield from self._file
        if self._path.stat().st_ino != _inode(self._file.fileno()):
            yield from self._file
            self._file.close()
            self._file = self._path.open("rb")
            yield from self._file


def _inode(descriptor: int) -> int:
    return os.fstat(descriptor).st_ino


def _nanoseconds(moment: bytes) -> int:
    try:
        return clock.nanoseconds(moment.decode("ascii", "replace"))
    except ValueError:
        return 0
