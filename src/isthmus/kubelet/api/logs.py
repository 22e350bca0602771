"""Logs of ended pods, read from their files; the supervisor of a running pod sends its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

from isthmus.podproto.logs import Lines, LogOptions, beginning, nanoseconds


def options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Parse the query of a log request.

    Raises:
        ValueError: an invalid or negative number or time.
    """
    since = query.get("sinceTime")
    if (seconds := _count(query, "sinceSeconds")) is not None:
        since = (now - timedelta(seconds=seconds)).isoformat()
    if since:
        nanoseconds(since)
    return LogOptions(
        follow=query.get("follow") in ("true", "1"),
        tail=_count(query, "tailLines"),
        since=since,
        timestamps=query.get("timestamps") in ("true", "1"),
        previous=query.get("previous") in ("true", "1"),
        limit_bytes=_count(query, "limitBytes"),
    )


def kept(runs: Iterable[Sequence[Path]], options: LogOptions) -> Iterator[bytes]:
    """Yield chunks of a stored log; none if there is no such run. Reads files: to be called in a thread.

    Args:
        runs: the files of each of the container's runs, oldest first.
        options: which part of them.
    """
    files = list(runs)[-2 if options.previous else -1 :]
    if not files or (options.previous and len(files) < 2):
        return
    left = options.limit_bytes
    lines = Lines(options)
    for text in filter(None, map(lines.shown, _records(files[0], options.tail))):
        piece = text if left is None else text[:left]
        if left is not None:
            left -= len(piece)
        yield piece
        if left == 0:
            return


def _records(paths: Sequence[Path], tail: int | None) -> Iterator[bytes]:
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        number, place = beginning([file.fileno() for file in files], tail)
        for file in files[number:]:
            file.seek(place)
            place = 0
            yield from file


def _count(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"{name}={text} is no number; give 0 or more")
    return int(text)
