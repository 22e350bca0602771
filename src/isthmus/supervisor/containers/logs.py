"""A container's log: files in the CRI's format, written here, read by `logread`.

A line is `TIME stdout|stderr F|P text`; P means that the line goes on in the next record of its stream. Each start of a
container has a file, `<restart>.log`; beyond SIZE_BYTES it becomes `<restart>.log.1` and a new one begins. Of earlier
starts only the last is kept.

A program never waits long for its log. Records wait in memory while the home is slow or takes nothing, up to
WAITING_BYTES; what comes then is dropped, and a record of its own says how many lines that were.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from isthmus.supervisor import clock, home
from isthmus.supervisor.runtime.processes import say

SIZE_BYTES = 10 << 20
# A longer line is written in parts (kubelet's limit).
LINE_BYTES = 16 << 10
STDOUT, STDERR = b"stdout", b"stderr"
WAITING_BYTES = 1 << 20
# Of the last lines, for a termination message.
_RECENT_BYTES = 1 << 13
# From here on a program is read more slowly, while the home still takes something.
_SLOW_BYTES = WAITING_BYTES // 4
_STALLED_S = 1.0
RETRY_S = 1.0
# How long a log that has ended tries to be written.
CLOSE_S = 10.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class LogWriter:
    """The log of one start; nothing is taken after `close`.

    Args:
        folder: of the container's logs.
        restart: number of the start.
        run: runs what touches the home.
    """

    def __init__(self, folder: Path, restart: int, run: home.Run) -> None:
        self.path = folder / f"{restart}.log"
        self._run = run
        self._file = _File(self.path, restart)
        self._parts = {STDOUT: b"", STDERR: b""}
        self._recent = b""
        self.waiting: list[bytes] = []
        self._waiting_bytes = self._lost = 0
        self._busy = self._closing = self.closed = False
        self._moved = asyncio.Event()
        # Why the home took nothing the last time; empty when it did.
        self.error = ""
        # Readers that follow: called after each write and at the end.
        self.listeners: set[Callable[[], None]] = set()
        self._flush()

    @property
    def files(self) -> list[Path]:
        """What there is of it, oldest first."""
        return [path for path in (self.path.with_name(f"{self.path.name}.1"), self.path) if path.exists()]

    def write(self, stream: bytes, content: bytes) -> None:
        """Add what the container has written; the end of an unfinished line waits for more."""
        lines = (self._parts[stream] + content).split(b"\n")
        self._parts[stream] = lines.pop()
        moment = clock.precise().encode()
        records = [record for line in lines for record in _records(moment, stream, line)]
        while len(self._parts[stream]) >= LINE_BYTES:
            part, self._parts[stream] = self._parts[stream][:LINE_BYTES], self._parts[stream][LINE_BYTES:]
            records.append(_record(moment, stream, b"P", part))
        self._add(records)
        self._flush()

    async def room(self) -> None:
        """Wait while much is still to be written, but not for a home that takes nothing."""
        while self._waiting_bytes > _SLOW_BYTES and not self.error and not self.closed:
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _STALLED_S)
            except TimeoutError:
                self._fails("it does not answer")

    async def settled(self, timeout_s: float) -> None:
        """Wait until all that was written is in the file, unless the home does not take it."""
        with suppress(asyncio.TimeoutError):
            while (self._busy or self.waiting) and not self.error:
                self._moved.clear()
                await asyncio.wait_for(self._moved.wait(), timeout_s)

    def close(self) -> None:
        """Write what has no line's end, then tell the readers that nothing more comes; a home is not waited for."""
        if self._closing:
            return
        self._closing = True
        moment = clock.precise().encode()
        for stream, rest in self._parts.items():
            if rest:
                self._add([_record(moment, stream, b"F", rest)])
        self._flush()
        if not self.closed:
            asyncio.get_running_loop().call_later(CLOSE_S, self._finish)

    def tail(self, most_bytes: int, most_lines: int) -> str:
        """Return the last lines, for a termination message."""
        texts = self._recent.removesuffix(b"\n").split(b"\n")
        return b"\n".join(texts[-most_lines:])[-most_bytes:].decode(errors="replace")

    def _add(self, records: list[bytes]) -> None:
        texts = b"".join(record.split(b" ", 3)[3] for record in records)
        self._recent = (self._recent + texts)[-_RECENT_BYTES:]
        for record in records:
            self._keep(record)

    def _keep(self, record: bytes) -> None:
        if self._waiting_bytes + len(record) > WAITING_BYTES:
            self._lost += 1
            return
        if self._lost:
            text = f"[isthmus] {self._lost} lines are missing: the home did not take them ({self.error or 'too slow'})"
            marker = _record(clock.precise().encode(), STDERR, b"F", text.encode())
            self._lost = 0
            self.waiting.append(marker)
            self._waiting_bytes += len(marker)
        self.waiting.append(record)
        self._waiting_bytes += len(record)

    def _flush(self) -> None:
        if self._busy or self.closed:
            return
        # While the home takes nothing, only the timer tries.
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
        self._tell()
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
            self.waiting.append(_record(clock.precise().encode(), STDERR, b"F", text.encode()))
            self._waiting_bytes += len(self.waiting[-1])

    def _fails(self, why: str) -> None:
        if not self.error:
            say(f"{self.path} cannot be written: {why}; the container goes on, what it says waits; look at the home")
        self.error = why

    def _finish(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self.waiting or self._lost:
            say(f"{self.path}: {len(self.waiting) + self._lost} lines are lost: {self.error or 'the home is too slow'}")
        self._run(self._file.close, lambda _: None)
        self._moved.set()
        self._tell()

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()


class _File:
    """The file of a log, as the home's thread sees it."""

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
        """Begin a new file."""
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self.close()
        self._descriptor = self._open()


def _record(moment: bytes, stream: bytes, mark: bytes, text: bytes) -> bytes:
    return b" ".join((moment, stream, mark, text)) + b"\n"


def _records(moment: bytes, stream: bytes, line: bytes) -> list[bytes]:
    starts = range(0, max(len(line), 1), LINE_BYTES)
    parts = [line[start : start + LINE_BYTES] for start in starts]
    marks = [b"P"] * (len(parts) - 1) + [b"F"]
    return [_record(moment, stream, mark, part) for mark, part in zip(marks, parts, strict=True)]


def _forget(folder: Path, before: int) -> None:
    for path in folder.glob("*.log*"):
        number = path.name.split(".")[0]
        if number.isdecimal() and int(number) < before:
            path.unlink()
