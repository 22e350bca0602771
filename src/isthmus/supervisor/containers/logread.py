"""Reads a container's log with the options of `kubectl logs`: tail, since, timestamps, limit, follow.

A log has up to 20 MiB and the supervisor little memory: it is read in blocks, `tail` from the end, and
in the thread that may block on the home.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.podproto.logs import Lines, LogOptions, beginning
from isthmus.supervisor.containers.logs import LogWriter

_CHUNK_BYTES = 1 << 16
# How long to wait for unwritten records of before the request.
_STABLE_S = 2.0
Call = Callable[[Callable[[], Any]], Awaitable[Any]]


async def read(log: LogWriter, options: LogOptions, call: Call) -> AsyncIterator[bytes]:
    """Yield chunks of a log, with `follow` until it is closed.

    Args:
        log: of one start.
        options: which part of it.
        call: runs accesses to the home in a thread.

    Raises:
        OSError: the log cannot be read.
    """
    left = options.limit_bytes
    async for piece in _pieces(log, options, call):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        if piece:
            yield piece
        if left == 0:
            return


async def _pieces(log: LogWriter, options: LogOptions, call: Call) -> AsyncIterator[bytes]:
    changed = asyncio.Event()
    log.listeners.add(changed.set)
    reader = _Reader(log)
    try:
        lines = Lines(options)
        await log.flushed(_STABLE_S)
        await call(lambda: reader.open(options.tail))
        while True:
            closed = log.closed
            while block := await call(reader.read):
                yield lines.all(block.splitlines())
            if not options.follow:
                # Unwritten records exist in memory only.
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
        if self._files:
            number, place = beginning(self._files, tail)
            self._drop(number)
            os.lseek(self._files[0], place, os.SEEK_SET)

    def read(self) -> bytes:
        """Return whole records; empty at the present end."""
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
        """Open the next file; return whether there is one."""
        if len(self._files) > 1:
            self._drop(1)
            return True
        now = os.fstat(self._files[0])
        try:
            if self._path.stat().st_ino == now.st_ino:
                return False
        except FileNotFoundError:
            return False
        # It was rotated since the last read.
        if os.fstat(self._files[0]).st_size == os.lseek(self._files[0], 0, os.SEEK_CUR):
            self._drop(1)
        return True


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
