"""Reads a container's log as `kubectl logs` asks for it: tail, since, timestamps, limit, and following a live one.

A log has up to 20 MiB, and the supervisor little memory: it is read block by block, the last lines from the end, and
in the thread that may wait for the home.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.supervisor import clock
from isthmus.supervisor.containers.logs import LogWriter

_CHUNK_BYTES = 1 << 16
# How long a home may take for what was said before somebody asked.
_SETTLED_S = 2.0
Call = Callable[[Callable[[], Any]], Awaitable[Any]]


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

    def all(self, records: Iterable[bytes]) -> bytes:
        """Return the texts of records."""
        return b"".join(text for record in records if (text := self.shown(record)) is not None)


async def read(log: LogWriter, wanted: Wanted, call: Call) -> AsyncIterator[bytes]:
    """Yield pieces of a log, and with `follow` what comes until it is closed.

    Args:
        log: of one start.
        wanted: what of it.
        call: runs what touches the home.

    Raises:
        OSError: the home does not give it.
    """
    left = wanted.limit_bytes
    async for piece in _pieces(log, wanted, call):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        if piece:
            yield piece
        if left == 0:
            return


async def _pieces(log: LogWriter, wanted: Wanted, call: Call) -> AsyncIterator[bytes]:
    changed = asyncio.Event()
    log.listeners.add(changed.set)
    reader = _Reader(log)
    try:
        lines = Lines(wanted)
        await log.settled(_SETTLED_S)
        await call(lambda: reader.open(wanted.tail))
        while True:
            closed = log.closed
            while block := await call(reader.read):
                yield lines.all(block.splitlines())
            if not wanted.follow:
                # What the home has not taken yet is nowhere else.
                yield lines.all([*log.waiting] if log.error else [])
                return
            if closed:
                return
            await changed.wait()
            changed.clear()
    finally:
        log.listeners.discard(changed.set)
        closing = asyncio.ensure_future(call(reader.close))
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())


class _Reader:
    """Reads the files of a log block by block, on into those that begin meanwhile; all of it where the home is read."""

    def __init__(self, log: LogWriter) -> None:
        self._log = log
        self._path = log.path
        self._files: list[int] = []
        self._rest = b""

    def open(self, tail: int | None) -> None:
        """Open what there is, at the beginning of the last lines; None for all."""
        for path in self._log.files:
            self._files.append(_opened(path))
        number = len(self._files)
        while tail is not None and number:
            number -= 1
            place, tail = _tail(self._files[number], tail)
            os.lseek(self._files[number], place, os.SEEK_SET)
            if place:
                self._drop(number)
                return

    def read(self) -> bytes:
        """Return whole records; nothing when there are no more now."""
        while True:
            if not self._files and not self._begin():
                return b""
            found = os.read(self._files[0], _CHUNK_BYTES)
            if not found:
                if not self._turn():
                    return b""
                continue
            whole, end, self._rest = (self._rest + found).rpartition(b"\n")
            if end:
                return whole + end

    def close(self) -> None:
        """Close all files."""
        self._drop(len(self._files))

    def _drop(self, count: int) -> None:
        gone, self._files = self._files[:count], self._files[count:]
        for file in gone:
            os.close(file)

    def _begin(self) -> bool:
        with suppress(FileNotFoundError):
            self._files = [_opened(self._path)]
        return bool(self._files)

    def _turn(self) -> bool:
        """Go to the next file; tell whether there is more."""
        if len(self._files) > 1:
            self._drop(1)
            return True
        now = os.fstat(self._files[0])
        try:
            if self._path.stat().st_ino == now.st_ino:
                return False
        except FileNotFoundError:
            return False
        # It became the older one between the last look and this.
        if os.fstat(self._files[0]).st_size == os.lseek(self._files[0], 0, os.SEEK_CUR):
            self._drop(1)
        return True


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _tail(file: int, count: int) -> tuple[int, int]:
    """Return where the last lines of a file begin, and how many more the file before has."""
    place = os.fstat(file).st_size
    rest = b""
    while place:
        size = min(_CHUNK_BYTES, place)
        place -= size
        block = os.pread(file, size, place) + rest
        # Before it a record ends that begins in the block before.
        first = block.find(b"\n") + 1 if place else 0
        end = len(block)
        while end > first:
            begin = max(block.rfind(b"\n", 0, end - 1) + 1, first)
            if _ends_line(block[begin:end]):
                if not count:
                    return place + end, 0
                count -= 1
            end = begin
        rest = block[:first]
    return 0, count


def _ends_line(record: bytes) -> bool:
    return record.split(b" ", 3)[2:3] == [b"F"]


def _nanoseconds(moment: bytes) -> int:
    try:
        return clock.nanoseconds(moment.decode("ascii", "replace"))
    except ValueError:
        return 0
