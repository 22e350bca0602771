"""Writes a container's log; `logread` reads it.

Each start of a container has a file, which is rotated at SIZE_BYTES. Of earlier starts only the
last is kept. `podproto.logs` and `podproto.folder` define the records and the file names.

A program never blocks long on its log. Records are buffered while the home is slow or unwritable, up to
WAITING_BYTES; further lines are dropped, and a record says how many.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from isthmus.podproto import folder as names
from isthmus.podproto import logs as form
from isthmus.podproto.logs import LINE_BYTES, STDERR, STDOUT
from isthmus.supervisor import clock, home
from isthmus.supervisor.runtime.processes import say

SIZE_BYTES = 10 << 20
WAITING_BYTES = 1 << 20
# Last lines that are kept for a termination message.
_RECENT_BYTES = 1 << 13
# Above this a program is throttled while the home is slow.
_SLOW_BYTES = WAITING_BYTES // 4
_STALLED_S = 1.0
RETRY_S = 1.0
# How long an ended log is still retried.
CLOSE_S = 10.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class LogWriter:
    """The log of one start; nothing is written after `close`.

    Args:
        folder: of the container's logs.
        restart: number of the start.
        run: runs accesses to the home in a thread.
    """

    def __init__(self, folder: Path, restart: int, run: home.Run) -> None:
        self.path = names.log(folder, restart)
        self._run = run
        self._file = _File(self.path, restart)
        self._parts = {STDOUT: b"", STDERR: b""}
        self._recent = b""
        self.waiting: list[bytes] = []
        self._waiting_bytes = self._lost = 0
        self._busy = self._closing = self.closed = False
        self._moved = asyncio.Event()
        # The last write error; empty after a success.
        self.error = ""
        # Readers that follow: called after each write and at the end.
        self.listeners: set[Callable[[], None]] = set()
        self._flush()

    @property
    def files(self) -> list[Path]:
        """Its files, oldest first."""
        return names.parts(self.path)

    def write(self, stream: bytes, content: bytes) -> None:
        """Append output; an unfinished line is kept until it is complete."""
        lines = (self._parts[stream] + content).split(b"\n")
        self._parts[stream] = lines.pop()
        moment = clock.precise().encode()
        records = [record for line in lines for record in form.records(moment, stream, line)]
        while len(self._parts[stream]) >= LINE_BYTES:
            part, self._parts[stream] = self._parts[stream][:LINE_BYTES], self._parts[stream][LINE_BYTES:]
            records.append(form.record(moment, stream, form.PART, part))
        self._add(records)
        self._flush()

    async def room(self) -> None:
        """Throttle while the buffer is large, but not if the home is unwritable."""
        while self._waiting_bytes > _SLOW_BYTES and not self.error and not self.closed:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _STALLED_S)
            except TimeoutError:
                self._fails("it does not answer")

    async def flushed(self, timeout_s: float) -> None:
        """Wait until everything is in the file, unless the home is unwritable."""
        with suppress(asyncio.TimeoutError):
            while (self._busy or self.waiting) and not self.error:
                self._moved.clear()
                await asyncio.wait_for(self._moved.wait(), timeout_s)

    def close(self) -> None:
        """Write an unfinished line, then signal the end to readers; does not wait for the home."""
        if self._closing:
            return
        self._closing = True
        moment = clock.precise().encode()
        for stream, rest in self._parts.items():
            if rest:
                self._add([form.record(moment, stream, form.WHOLE, rest)])
        self._flush()
        if not self.closed:
            asyncio.get_running_loop().call_later(CLOSE_S, self._finish)

    def tail(self, most_bytes: int, most_lines: int) -> str:
        """Return the last lines, for a termination message."""
        texts = self._recent.removesuffix(b"\n").split(b"\n")
        return b"\n".join(texts[-most_lines:])[-most_bytes:].decode(errors="replace")

    def _add(self, records: list[bytes]) -> None:
        texts = b"".join(map(form.text, records))
        self._recent = (self._recent + texts)[-_RECENT_BYTES:]
        for record in records:
            self._keep(record)

    def _keep(self, record: bytes) -> None:
        if self._waiting_bytes + len(record) > WAITING_BYTES:
            self._lost += 1
            return
        if self._lost:
            text = f"[isthmus] {self._lost} lines are missing: the home did not take them ({self.error or 'too slow'})"
            marker = form.record(clock.precise().encode(), STDERR, form.WHOLE, text.encode())
            self._lost = 0
            self.waiting.append(marker)
            self._waiting_bytes += len(marker)
        self.waiting.append(record)
        self._waiting_bytes += len(record)

    def _flush(self) -> None:
        if self._busy or self.closed:
            return
        # While the home is unwritable, only the timer retries.
        if self.error and not self._closing:
            return
        self._try()

    def _try(self) -> None:
        if self._busy or self.closed:
            return
        self._busy, batch = True, self.waiting
        self.waiting = []
        content = b"".join(batch)
        self._run(lambda: self._file.append(content), lambda error: self._written(batch, len(content), error))

    def _written(self, batch: list[bytes], size: int, error: OSError | None) -> None:
        self._busy = False
        if error is None:
            self._waiting_bytes -= size
            self.error = ""
        else:
            self.waiting = batch + self.waiting
            self._fails(home.why(error))
        self._moved.set()
        self._wake()
        if error is not None and not self.closed:
            asyncio.get_running_loop().call_later(RETRY_S, self._try)
        elif self.waiting or (self._lost and self._closing):
            self._mark_end()
            self._try()
        elif self._closing:
            self._finish()

    def _mark_end(self) -> None:
        if self._closing and self._lost and self._waiting_bytes < WAITING_BYTES:
            text = f"[isthmus] {self._lost} lines are missing: the home did not take them"
            self._lost = 0
            self.waiting.append(form.record(clock.precise().encode(), STDERR, form.WHOLE, text.encode()))
            self._waiting_bytes += len(self.waiting[-1])

    def _fails(self, why: str) -> None:
        if not self.error:
            say(f"{self.path} cannot be written: {why}; the container continues, output is buffered; check the home")
        self.error = why

    def _finish(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self.waiting or self._lost:
            count, why = len(self.waiting) + self._lost, self.error or "the home is too slow"
            say(f"{self.path}: {count} lines were dropped: {why}")
        self._run(self._file.close, lambda _: None)
        self._moved.set()
        self._wake()

    def _wake(self) -> None:
        for listener in list(self.listeners):
            listener()


class _File:
    """The file of a log; used in the home's thread only."""

    def __init__(self, path: Path, restart: int) -> None:
        self._path = path
        self._restart = restart
        self._descriptor: int | None = None

    def append(self, content: bytes) -> None:
        """Write all of it, or nothing.

        Raises:
            OSError: nothing was written.
        """
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _forget(self._path.parent, self._restart - 1)
            self._descriptor = self._open()
        try:
            size = os.fstat(self._descriptor).st_size
            if size >= 2 * SIZE_BYTES:
                raise OSError(errno.EFBIG, "the log cannot be rotated")
            self._write(self._descriptor, content, size)
        except OSError as error:
            # A handle that a file server has forgotten (ESTALE) never comes back.
            if error.errno not in _FULL:
                self.close()
            raise
        if size + len(content) >= SIZE_BYTES:
            with suppress(OSError):
                self._turn()

    def close(self) -> None:
        """Close it, if it is open."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _write(self, descriptor: int, content: bytes, size: int) -> None:
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _turn(self) -> None:
        """Open a new file."""
        self._path.replace(names.rotated(self._path))
        self.close()
        self._descriptor = self._open()


def _forget(folder: Path, before: int) -> None:
    for path in folder.glob("*.log*"):
        number = path.name.split(".")[0]
        if number.isdecimal() and int(number) < before:
            path.unlink()
