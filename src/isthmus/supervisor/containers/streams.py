"""Streams that the kubelet opens while the pod runs: exec, attach, logs, forwarded ports, metrics.

Each stream is a separate task, and its end is sent once. Output waits for the window that the kubelet has granted,
and vice versa, so neither a program that does not read its stdin nor a slow reader
delays another stream (`podproto.windows`). For a kubelet without windows output is sent immediately, and its input
waits in a short queue, which blocks the channel.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from isthmus.podproto import frames, windows
from isthmus.podproto.frames import Channel as Of
from isthmus.podproto.frames import Data, Message
from isthmus.podproto.logs import STDOUT as OUT
from isthmus.podproto.logs import LogOptions
from isthmus.supervisor.channel import Channel
from isthmus.supervisor.containers import logread, outputs, stats
from isthmus.supervisor.containers.container import Runner
from isthmus.supervisor.report import Exit
from isthmus.supervisor.runtime.processes import StartError

_QUEUE = 64
_HELD_S = 5.0
# A client of `kubectl attach` that reads nothing for so long is disconnected: it blocks the program and its log.
STUCK_S = 20.0


class Containers(Protocol):
    """The part of the pod that streams use."""

    def runner(self, name: str) -> Runner:
        """Return a container, or raise StartError."""

    @property
    def runners(self) -> list[Runner]:
        """All of them."""


class Stream:
    """One stream: its input queue and its output."""

    def __init__(self, channel: Channel, request: Message) -> None:
        self.number = int(request["stream"])
        self.request = request
        self._channel = channel
        window = request.get("window")
        self._outgoing = None if window is None else windows.Outgoing(int(window))
        self._incoming = None if window is None else windows.Incoming()
        self._came: asyncio.Queue[Data] = asyncio.Queue(_QUEUE if window is None else 0)
        self._sent = 0

    async def passed_on(self, pumps: Sequence[asyncio.Future[None]]) -> None:
        """Wait until the data in a program's pipes are sent; processes that only hold them open are ignored."""
        while True:
            before = self._sent
            _, pumping = await asyncio.wait(pumps, timeout=_HELD_S)
            is_held_up = self._outgoing is not None and self._outgoing.is_waiting
            if not pumping or (self._sent == before and not is_held_up):
                return

    async def begin(self) -> None:
        """Grant the first window for input."""
        if self._incoming is not None:
            await self._channel.send(frames.message(windows.grant(self.number, windows.WINDOW_BYTES)))

    async def send(self, channel: int, content: bytes) -> None:
        """Send bytes of a channel within its window; no bytes close it."""
        for chunk in frames.chunks(content):
            if self._outgoing is None or await self._outgoing.take(chunk):
                await self._channel.send(frames.data(self.number, channel, chunk))
                self._sent += 1

    def granted(self, count: int) -> None:
        """Send so many bytes more."""
        if self._outgoing is not None:
            self._outgoing.add(count)

    async def put(self, data: Data) -> None:
        """Queue input; wait for room if the kubelet has no windows.

        Raises:
            FrameError: the data exceed the window.
        """
        if self._incoming is not None:
            self._incoming.received(data.body)
        await self._came.put(data)

    async def receive(self) -> Data:
        """Return the next input."""
        data = await self._came.get()
        if self._incoming is not None and (count := self._incoming.taken(data.body)):
            await self._channel.send(frames.message(windows.grant(self.number, count)))
        return data


class Streams:
    """All streams of the connection."""

    def __init__(self, channel: Channel, pod: Containers, call: logread.Call) -> None:
        self._call = call
        self._channel = channel
        self._pod = pod
        self._streams: dict[int, Stream] = {}
        self._tasks: dict[int, asyncio.Future[None]] = {}
        self._kinds: dict[str, Callable[[Stream], Awaitable[int | None]]] = {
            "exec": self._exec,
            "attach": self._attach,
            "logs": self._logs,
            "forward": self._forward,
            "stats": self._stats,
        }

    def knows(self, kind: str) -> bool:
        """Return whether a message asks for a stream."""
        return kind in self._kinds

    def open(self, request: Message) -> None:
        """Begin a stream."""
        stream = Stream(self._channel, request)
        self._streams[stream.number] = stream
        self._tasks[stream.number] = asyncio.ensure_future(self._run(stream))

    async def data(self, data: Data) -> None:
        """Handle data for a stream; ignored if it has ended.

        Raises:
            FrameError: the data exceed the window.
        """
        stream, task = self._streams.get(data.stream), self._tasks.get(data.stream)
        if stream is not None and task is not None:
            put: list[asyncio.Future[Any]] = [asyncio.ensure_future(stream.put(data)), task]
            await asyncio.wait(put, return_when=asyncio.FIRST_COMPLETED)
            if put[0].done():
                put[0].result()
            put[0].cancel()

    def cancel(self, number: int) -> None:
        """Cancel a stream."""
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    def granted(self, number: int, count: int) -> None:
        """Extend a stream's window; ignored if it has ended."""
        if number in self._streams:
            self._streams[number].granted(count)

    async def flushed(self, timeout_s: float) -> None:
        """Wait until all streams have ended, or the time is over."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=timeout_s)

    async def close(self) -> None:
        """End all streams."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, stream: Stream) -> None:
        code, error = None, None
        try:
            await stream.begin()
            code = await self._kinds[stream.request["type"]](stream)
        except (StartError, OSError, ValueError, KeyError, TypeError) as problem:
            error = f"{stream.request['type']}: {problem}"
        finally:
            self._streams.pop(stream.number, None)
            self._tasks.pop(stream.number, None)
        await self._channel.end(stream.number, code, error)

    async def _exec(self, stream: Stream) -> int:
        wanted = stream.request
        runner = self._pod.runner(wanted["container"])
        pipes = outputs.terminal() if wanted["tty"] else outputs.pipes(wanted["stdin"])
        ours = {each for each in pipes.ours if each is not None}
        try:
            process = await runner.run_in(runner.program(wanted["argv"], terminal=wanted["tty"]), pipes)
        except StartError:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            pipes.close_theirs()
        stdin, stdout, stderr = pipes.ours
        tasks = [asyncio.ensure_future(outputs.pump(stdout, lambda content: stream.send(Of.STDOUT, content)))]
        if stderr is not None:
            tasks.append(asyncio.ensure_future(outputs.pump(stderr, lambda content: stream.send(Of.STDERR, content))))
        feeding = asyncio.ensure_future(_feed(stream, stdin, ours, tty=wanted["tty"]))
        try:
            await process.ended()
            # Another process may still hold the pipes; its output is not this program's.
            await stream.passed_on(tasks)
            return Exit.of_status(process.status.result()).code
        finally:
            process.kill(signal.SIGKILL)
            await _end([*tasks, feeding])
            for descriptor in ours:
                os.close(descriptor)

    async def _attach(self, stream: Stream) -> int:
        runner = self._pod.runner(stream.request["container"])
        output = runner.output
        if output is None or output.ended.is_set():
            raise StartError(f"container {runner.name} is not running")

        async def listener(source: bytes, content: bytes) -> None:
            try:
                await asyncio.wait_for(stream.send(Of.STDOUT if source == OUT else Of.STDERR, content), STUCK_S)
            except TimeoutError:
                self.cancel(stream.number)

        async def feeding() -> None:
            while True:
                data = await stream.receive()
                if data.channel == Of.RESIZE:
                    output.resize(*_size(data.body))
                elif data.channel == Of.STDIN and stream.request["stdin"]:
                    await output.write(data.body)

        task = asyncio.ensure_future(feeding())
        output.listeners.add(listener)
        try:
            await output.ended.wait()
            # The exit status is reported with the pod; `kubectl run` takes any other end for a failed attach.
            return 0
        finally:
            output.listeners.discard(listener)
            await _end([task])

    async def _logs(self, stream: Stream) -> None:
        runner = self._pod.runner(stream.request["container"])
        log = runner.previous if stream.request["previous"] else runner.log
        if log is None:
            which = "an earlier" if stream.request["previous"] else "a"
            raise StartError(f"container {runner.name} has not had {which} start")
        async for piece in logread.read(log, LogOptions.read(stream.request), self._call):
            await stream.send(Of.STDOUT, piece)

    async def _forward(self, stream: Stream) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", stream.request["port"])

        async def sending() -> None:
            while True:
                data = await stream.receive()
                if not data.body:
                    writer.write_eof()
                    return
                writer.write(data.body)
                await writer.drain()

        task = asyncio.ensure_future(sending())
        try:
            while True:
                content = await reader.read(outputs.CHUNK_BYTES)
                if not content:
                    break
                await stream.send(Of.STDOUT, content)
            await stream.send(Of.STDOUT, b"")
        finally:
            await _end([task])
            writer.close()

    async def _stats(self, stream: Stream) -> None:
        await stream.send(Of.STDOUT, json.dumps(stats.collect(self._pod.runners)).encode())


async def _feed(stream: Stream, stdin: int | None, ours: set[int], *, tty: bool) -> None:
    """Copy input to a program; `ours` are the open descriptors, each to be closed once."""
    while True:
        data = await stream.receive()
        if data.channel == Of.RESIZE and tty and stdin is not None:
            outputs.resize(stdin, *_size(data.body))
        elif data.channel == Of.STDIN and stdin is not None:
            if data.body:
                with suppress(OSError):
                    await outputs.feed(stdin, data.body)
            elif tty:
                # What a terminal sends at the end of input (termios(3), VEOF).
                with suppress(OSError):
                    await outputs.feed(stdin, b"\x04")
            else:
                ours.discard(stdin)
                os.close(stdin)
                stdin = None


def _size(content: bytes) -> tuple[int, int]:
    size = json.loads(content or b"{}")
    return int(size.get("Width", 80)), int(size.get("Height", 24))


async def _end(tasks: list[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
