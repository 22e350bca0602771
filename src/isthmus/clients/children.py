"""Long-running child processes: their output is passed on by line, their end is awaited.

A child dies with its parent, however that ends (prctl(2), PR_SET_PDEATHSIG), unless it gives that up as Apptainer does.
setpriv(1) asks for it, as Python code between fork and exec may hang.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

# Longer lines are cut there; a stack trace is many lines.
_LINE_BYTES = 1 << 16


class Child:
    """A program that was started."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.Task[None]) -> None:
        self._process = process
        self._reader = reader

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Return its exit status, or the negative number of the signal that ended it."""
        status = await self._process.wait()
        # What it started may hold its output open; its own output is complete by then.
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reader), 1)
        self._reader.cancel()
        return status

    async def stop(self, grace_s: float) -> int:
        """Ask it to end, and end it after so many seconds."""
        self._signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(asyncio.shield(self._process.wait()), grace_s)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            return await self._process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def start(
    argv: Sequence[str],
    hear: Callable[[str], None],
    *,
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
) -> Child:
    """Start a program.

    Args:
        argv: the program and its arguments; no shell sees them.
        hear: gets each line of both its streams.
        environment: variables set besides the inherited ones.
        keep: open file descriptors that it gets too.

    Raises:
        OSError: it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        "setpriv",
        "--pdeathsig=KILL",
        "--",
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **(environment or {})},
        pass_fds=tuple(keep),
        limit=_LINE_BYTES,
    )
    assert process.stdout is not None  # noqa: S101 -- it was asked for
    return Child(process, asyncio.create_task(_read(process.stdout, hear), name=f"output of {argv[0]}"))


async def _read(stream: asyncio.StreamReader, hear: Callable[[str], None]) -> None:
    while not stream.at_eof():
        try:
            line = await stream.readline()
        except ValueError:  # longer than the limit; the stream has dropped what it had
            continue
        if line:
            hear(line.decode(errors="replace").rstrip("\n"))
