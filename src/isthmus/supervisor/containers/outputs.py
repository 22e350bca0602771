"""File descriptors in asyncio: pumps from a program's output to sinks, and writes to its stdin."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

CHUNK_BYTES = 1 << 16
Sink = Callable[[bytes], Awaitable[None] | None]


@dataclass(frozen=True)
class Pipes:
    """The two ends of a program's streams: `theirs` become its 0, 1, 2; `ours` are stdin, stdout, stderr or None."""

    theirs: tuple[int, int, int]
    ours: tuple[int | None, int, int | None]

    def close_theirs(self) -> None:
        """Close the program's ends here."""
        for descriptor in set(self.theirs):
            os.close(descriptor)


def terminal() -> Pipes:
    """Make a pseudo-terminal; input and output are one descriptor here."""
    ours, theirs = pty.openpty()
    return Pipes((theirs, theirs, theirs), (ours, ours, None))


def pipes(stdin: bool) -> Pipes:
    """Make pipes; without `stdin` the program reads /dev/null."""
    read_in, write_in = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    read_out, write_out = os.pipe()
    read_err, write_err = os.pipe()
    return Pipes((read_in, write_out, write_err), (write_in, read_out, read_err))


def resize(descriptor: int, width: int, height: int) -> None:
    """Set a terminal's size in characters."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


async def pump(descriptor: int, sink: Sink) -> None:
    """Copy a descriptor to a sink until its end; a terminal whose program has ended returns EIO."""
    os.set_blocking(descriptor, False)
    loop = asyncio.get_running_loop()
    while True:
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _resolve, ready)
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        try:
            content = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not content:
            return
        waited = sink(content)
        if waited is not None:
            await waited


async def feed(descriptor: int, content: bytes) -> None:
    """Write all of it, waiting while the program does not read.

    Raises:
        OSError: the reader has closed it.
    """
    os.set_blocking(descriptor, False)
    loop = asyncio.get_running_loop()
    while content:
        with suppress(BlockingIOError):
            content = content[os.write(descriptor, content) :]
            continue
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(descriptor, _resolve, ready)
        try:
            await ready
        finally:
            loop.remove_writer(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
