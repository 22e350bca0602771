"""Logs of pods that have ended, read from their files; a live pod's supervisor sends its own.

A line of a file is `TIME stdout|stderr F|P text` (Kubernetes, CRI log format); P means that the line goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a log is wanted (v1.PodLogOptions).

    Attributes:
        follow: whether to wait for more.
        tail: how many last lines; None for all.
        since: RFC 3339; nothing older.
        timestamps: whether each line begins with its time.
        previous: of the run before.
        limit_bytes: the most to send; None for all.
    """

    follow: bool = False
    tail: int | None = None
    since: str | None = None
    timestamps: bool = False
    previous: bool = False
    limit_bytes: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str], now: datetime) -> Self:
        """Read a query.

        Raises:
            ValueError: a number or time is none, or negative.
        """
        since = query.get("sinceTime")
        if (seconds := _count(query, "sinceSeconds")) is not None:
            since = (now - timedelta(seconds=seconds)).isoformat()
        if since:
            _time(since)
        return cls(
            follow=query.get("follow") in ("true", "1"),
            tail=_count(query, "tailLines"),
            since=since,
            timestamps=query.get("timestamps") in ("true", "1"),
            previous=query.get("previous") in ("true", "1"),
            limit_bytes=_count(query, "limitBytes"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what the supervisor reads."""
        return {
            "follow": self.follow,
            "tail": self.tail,
            "since": self.since,
            "timestamps": self.timestamps,
            "previous": self.previous,
            "limit_bytes": self.limit_bytes,
        }


def kept(runs: Iterable[Sequence[Path]], wanted: Wanted) -> Iterator[bytes]:
    """Yield pieces of a kept log; nothing when there is no such run. Reads files: to be run in a thread.

    Args:
        runs: the files of each of the container's runs, oldest first.
        wanted: what of them.
    """
    files = list(runs)[-2 if wanted.previous else -1 :]
    if not files or (wanted.previous and len(files) < 2):
        return
    left = wanted.limit_bytes
    chosen: Iterable[bytes] = _chosen(_records(files[0]), wanted)
    if wanted.tail is not None:
        chosen = _last(chosen, wanted.tail)
    for line in chosen:
        piece = line if left is None else line[:left]
        if left is not None:
            left -= len(piece)
        yield piece
        if left == 0:
            return


def _last(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Yield the last lines, whole ones, and what has no end yet."""
    whole: deque[bytes] = deque(maxlen=count)
    begun = b""
    for piece in pieces:
        begun += piece
        if begun.endswith(b"\n"):
            whole.append(begun)
            begun = b""
    yield from whole
    yield begun


def _records(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        with path.open("rb") as lines:
            yield from lines


def _chosen(lines: Iterable[bytes], wanted: Wanted) -> Iterator[bytes]:
    since = _time(wanted.since) if wanted.since else None
    begun = True
    for line in lines:
        parts = line.rstrip(b"\n").split(b" ", 3)
        if len(parts) < 4:
            continue
        time, _, mark, text = parts
        if since and _time(time.decode("ascii", "replace")) < since:
            continue
        head = time + b" " if wanted.timestamps and begun else b""
        begun = mark.startswith(b"F")
        yield head + text + (b"\n" if begun else b"")


def _count(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"{name}={text} is no number; give 0 or more")
    return int(text)


def _time(text: str) -> datetime:
    # Python knows microseconds, logs nanoseconds.
    head, point, rest = text.partition(".")
    digits = "".join(islice((one for one in rest if one.isdecimal()), 6)) if point else ""
    zone = rest.lstrip("0123456789") if point else ""
    read = datetime.fromisoformat(f"{head}.{digits:0<6}{zone}" if point else text)
    return read if read.tzinfo else read.replace(tzinfo=UTC)
