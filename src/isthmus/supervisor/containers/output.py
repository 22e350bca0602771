"""Standard streams of a container's program: to its log and attached clients, and from its stdin."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from isthmus.podproto.logs import STDERR, STDOUT
from isthmus.supervisor.containers import outputs
from isthmus.supervisor.containers.logs import LogWriter
from isthmus.supervisor.containers.outputs import Pipes, Sink

# Gets the name of the stream and what was written to it.
Listener = Callable[[bytes, bytes], Awaitable[None]]


class Output:
    """The streams of one start.

    Args:
        log: gets all output.
        tty: whether it is a terminal.
        stdin: whether clients may write to it.
        stdin_once: whether stdin is closed after the first client.
    """

    def __init__(self, log: LogWriter, *, tty: bool, stdin: bool, stdin_once: bool) -> None:
        self.log = log
        self.tty = tty
        self.pipes: Pipes = outputs.terminal() if tty else outputs.pipes(stdin)
        self.listeners: set[Listener] = set()
        self.ended = asyncio.Event()
        self._input: int | None = self.pipes.ours[0] if stdin else None
        self._once = stdin_once
        self._pumps: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """Start reading the program's output; the child's ends are closed here."""
        self.pipes.close_theirs()
        _, stdout, stderr = self.pipes.ours
        self._pumps = [asyncio.ensure_future(outputs.pump(stdout, self._wrote(STDOUT)))]
        if stderr is not None:
            self._pumps.append(asyncio.ensure_future(outputs.pump(stderr, self._wrote(STDERR))))

    async def close(self, timeout_s: float = 2.0) -> None:
        """Read the rest, then close all."""
        if self._pumps:
            await asyncio.wait(self._pumps, timeout=timeout_s)
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        self._input = None
        for descriptor in {each for each in self.pipes.ours if each is not None}:
            with suppress(OSError):
                os.close(descriptor)
        self.log.close()
        self.ended.set()

    async def write(self, content: bytes) -> None:
        """Write to stdin; no bytes close it unless it is a terminal."""
        if self._input is None:
            return
        if content:
            with suppress(OSError):
                await outputs.feed(self._input, content)
        elif not self.tty and self._once:
            descriptor, self._input = self._input, None
            self.pipes = Pipes(self.pipes.theirs, (None, *self.pipes.ours[1:]))
            os.close(descriptor)

    def resize(self, width: int, height: int) -> None:
        """Set the terminal's size in characters."""
        if self.tty and self.pipes.ours[0] is not None:
            outputs.resize(self.pipes.ours[0], width, height)

    def _wrote(self, stream: bytes) -> Sink:
        async def sink(content: bytes) -> None:
            self.log.write(stream, content)
            await self.log.room()
            for listener in list(self.listeners):
                await listener(stream, content)

        return sink
