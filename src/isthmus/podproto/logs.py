"""A container's log in the CRI's format: records, options of a request, and the reader.

A record is `TIME stdout|stderr F|P text`; P means that the line goes on in the next record of its stream. Each start of
a container has a file, whose older part is rotated (`folder`). The supervisor writes it and shows it while the pod
lives; the kubelet shows what is left of a pod that has ended, by the same reader.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

# A longer line is written in parts (kubelet's limit).
LINE_BYTES = 16 << 10
STDOUT, STDERR = b"stdout", b"stderr"
WHOLE, PART = b"F", b"P"
_BLOCK_BYTES = 1 << 16
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


class LogOptions(NamedTuple):
    """What of a log is asked for (v1.PodLogOptions).

    Attributes:
        follow: whether to wait for more.
        tail: how many last lines; None for all.
        since: RFC 3339; nothing older.
        timestamps: whether each line begins with its time.
        previous: of the start before.
        limit_bytes: the most to send; None for all.
    """

    follow: bool = False
    tail: int | None = None
    since: str | None = None
    timestamps: bool = False
    previous: bool = False
    limit_bytes: int | None = None

    @classmethod
    def read(cls, request: Mapping[str, Any]) -> LogOptions:
        """Read a request that came over the channel; what it lacks is as usual.

        Raises:
            ValueError: `since` is no moment.
        """
        options = cls(**{name: request[name] for name in cls._fields if request.get(name) is not None})
        if options.since:
            nanoseconds(options.since)
        return options

    def to_json(self) -> dict[str, Any]:
        """Return what a request has of them."""
        return self._asdict()


class Lines:
    """Turns records into what a user reads; keeps whether a line goes on."""

    def __init__(self, options: LogOptions) -> None:
        self._since_ns = nanoseconds(options.since) if options.since else None
        self._timestamps = options.timestamps
        self._begun = True

    def shown(self, record: bytes) -> bytes | None:
        """Return the text of a record, None for one that is not asked for or no record."""
        parts = record.rstrip(b"\n").split(b" ", 3)
        if len(parts) < 4:
            return None
        moment, _, mark, text = parts
        if self._since_ns is not None and _moment_ns(moment) < self._since_ns:
            return None
        head = moment + b" " if self._timestamps and self._begun else b""
        self._begun = mark == WHOLE
        return head + text + (b"\n" if self._begun else b"")

    def all(self, records: Iterable[bytes]) -> bytes:
        """Return the texts of records."""
        return b"".join(text for record in records if (text := self.shown(record)) is not None)


def record(moment: bytes, stream: bytes, mark: bytes, text: bytes) -> bytes:
    """Return a record with its end."""
    return b" ".join((moment, stream, mark, text)) + b"\n"


def records(moment: bytes, stream: bytes, line: bytes) -> list[bytes]:
    """Return the records of a whole line."""
    starts = range(0, max(len(line), 1), LINE_BYTES)
    parts = [line[start : start + LINE_BYTES] for start in starts]
    marks = [PART] * (len(parts) - 1) + [WHOLE]
    return [record(moment, stream, mark, part) for mark, part in zip(marks, parts, strict=True)]


def text(record: bytes) -> bytes:
    """Return the text of a record, with its end."""
    return record.split(b" ", 3)[3]


def _last_lines(file: int, count: int) -> tuple[int, int]:
    """Return where the last lines of a file begin, and how many more the file before has.

    A log may be large: it is read block by block from its end.
    """
    place = os.fstat(file).st_size
    rest = b""
    while place:
        size = min(_BLOCK_BYTES, place)
        place -= size
        block = os.pread(file, size, place) + rest
        # Before it a record ends that begins in the block before.
        first = block.find(b"\n") + 1 if place else 0
        end = len(block)
        while end > first:
            begin = max(block.rfind(b"\n", 0, end - 1) + 1, first)
            if block[begin:end].split(b" ", 3)[2:3] == [WHOLE]:
                if not count:
                    return place + end, 0
                count -= 1
            end = begin
        rest = block[:first]
    return 0, count


def beginning(files: Sequence[int], tail: int | None) -> tuple[int, int]:
    """Return where the last lines of a log begin: in which of its files, oldest first, and at which byte of that."""
    if tail is None:
        return 0, 0
    for number in reversed(range(len(files))):
        place, tail = _last_lines(files[number], tail)
        if place:
            return number, place
    return 0, 0


def nanoseconds(moment: str) -> int:
    """Return the nanoseconds since 1970 of an RFC 3339 moment.

    Raises:
        ValueError: it is none.
    """
    match = _MOMENT.fullmatch(moment)
    if not match:
        raise ValueError(f"{moment!r} is no RFC 3339 moment")
    zone = "+00:00" if match[3] == "Z" else match[3]
    whole = datetime.fromisoformat(match[1] + zone).astimezone(UTC)
    return int(whole.timestamp()) * 1_000_000_000 + int((match[2] or "0").ljust(9, "0"))


def _moment_ns(moment: bytes) -> int:
    try:
        return nanoseconds(moment.decode("ascii", "replace"))
    except ValueError:
        return 0
