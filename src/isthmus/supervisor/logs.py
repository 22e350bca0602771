"""A container's log: files in the CRI's format, written here, read by `logread`.

A line is `TIME stdout|stderr F|P text`; P means that the line goes on in the next record of its stream. Each start of a
container has a file, `<restart>.log`; beyond SIZE_BYTES it becomes `<restart>.log.1` and a new one begins. Of earlier
starts only the last is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from . import clock
from .processes import say

SIZE_BYTES = 10 << 20
# A longer line is written in parts (kubelet's limit).
LINE_BYTES = 16 << 10
STDOUT, STDERR = b"stdout", b"stderr"
# At least what stands before the text of a record.
_HEAD_BYTES = 48


class LogWriter:
    """The log of one start; nothing is written after `close`."""

    def __init__(self, folder: Path, restart: int) -> None:
        self.path = folder / f"{restart}.log"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget(folder, restart - 1)
        self._file = self._open()
        self._parts = {STDOUT: b"", STDERR: b""}
        self.closed = self._lost = False
        # Readers that follow: called after each write and at the end.
        self.listeners: set[Callable[[], None]] = set()

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
            records.append(b" ".join((moment, stream, b"P", part)))
        self._add(records)

    def close(self) -> None:
        """Write what has no line's end, and tell the readers that nothing more comes."""
        if self.closed:
            return
        moment = clock.precise().encode()
        for stream, rest in self._parts.items():
            if rest:
                self._add([b" ".join((moment, stream, b"F", rest))])
        self.closed = True
        os.close(self._file)
        self._tell()

    def tail(self, most_bytes: int, most_lines: int) -> str:
        """Return the last lines, for a termination message."""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - most_bytes - (most_lines + 1) * _HEAD_BYTES))
            records = [line.split(b" ", 3) for line in file.read().splitlines()]
        texts = [record[3] for record in records if len(record) == 4]
        return b"\n".join(texts[-most_lines:])[-most_bytes:].decode(errors="replace")

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _add(self, records: list[bytes]) -> None:
        if not records or self.closed:
            return
        try:
            os.write(self._file, b"".join(record + b"\n" for record in records))
            if os.fstat(self._file).st_size >= SIZE_BYTES:
                self._turn()
        except OSError as error:  # a full home, or one that became read-only: the program is not made to wait for it
            if not self._lost:
                say(f"{self.path} cannot be written: {error.strerror}; what it says is lost, look at the home")
            self._lost = True
        self._tell()

    def _turn(self) -> None:
        """Begin a new file."""
        self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        before, self._file = self._file, self._open()
        os.close(before)

    def _tell(self) -> None:
        for listener in list(self.listeners):
            listener()


def _records(moment: bytes, stream: bytes, line: bytes) -> list[bytes]:
    starts = range(0, max(len(line), 1), LINE_BYTES)
    parts = [line[start : start + LINE_BYTES] for start in starts]
    return [b" ".join((moment, stream, b"F" if part is parts[-1] else b"P", part)) for part in parts]


def _forget(folder: Path, before: int) -> None:
    for path in folder.glob("*.log*"):
        number = path.name.split(".")[0]
        if number.isdecimal() and int(number) < before:
            path.unlink()
