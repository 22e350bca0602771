"""Port-forward: each connection of a client is a pair of SPDY streams, `error` and `data`, in one WebSocket.

A pair shares a `requestid` and is connected with a stream of the pod. A port on which nothing listens is
reported on the error stream and ends that connection only.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from isthmus.kubelet.api.spdy import Bytes, Opened, Ping, Reset, Spdy, SpdyError
from isthmus.kubelet.channel import Connection, Stream
from isthmus.podproto.frames import Channel
from isthmus.support.aio import WSMsgType
from isthmus.support.aio.serving import web

PROTOCOL = "SPDY/3.1+portforward.k8s.io"

_log = logging.getLogger(__name__)


@dataclass
class _Pair:
    """One connection of the client."""

    port: int
    error: int = 0
    data: int = 0
    stream: Stream | None = None
    done: bool = False


@dataclass
class Forwarding:
    """One WebSocket with its connections.

    Attributes:
        socket: leads to kubectl.
        connection: to the pod, or why there is none.
    """

    socket: web.WebSocketResponse
    connection: Connection | str
    _spdy: Spdy = field(default_factory=Spdy)
    _pairs: dict[str, _Pair] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Serve until the client disconnects."""
        try:
            async for message in self.socket:
                if message.type is WSMsgType.BINARY:
                    for event in self._spdy.feed(message.data):
                        await self._take(event)
        except SpdyError as error:
            _log.warning("port-forward ended: %s", error)
        finally:
            for task in self._tasks:
                task.cancel()
            for pair in self._pairs.values():
                if pair.stream:
                    await pair.stream.cancel()

    async def _take(self, event: object) -> None:
        if isinstance(event, Opened):
            await self._open(event)
        elif isinstance(event, Bytes):
            await self._send(event)
        elif isinstance(event, Ping):
            await self.socket.send_bytes(event.frame)
        elif isinstance(event, Reset) and (pair := self._of(event.stream)):
            await self._drop(pair)

    async def _open(self, event: Opened) -> None:
        headers = event.headers
        port = headers.get("port", "")
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise SpdyError(f"a stream for port {port!r}")
        pair = self._pairs.setdefault(headers.get("requestid", port), _Pair(int(port)))
        await self.socket.send_bytes(self._spdy.reply(event.stream))
        if headers.get("streamtype") == "error":
            pair.error = event.stream
        else:
            pair.data = event.stream
            if isinstance(self.connection, str):
                await self._end(pair, self.connection)
                return
            pair.stream = await self.connection.open({"type": "forward", "port": pair.port})
            task = asyncio.create_task(self._pump(pair, pair.stream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, event: Bytes) -> None:
        pair = self._of(event.stream)
        if pair is None or pair.stream is None or event.stream != pair.data or pair.done:
            return
        if event.body:
            await pair.stream.send(Channel.STDIN, event.body)
        if event.last:
            await pair.stream.send(Channel.STDIN, b"")

    async def _pump(self, pair: _Pair, stream: Stream) -> None:
        async for item in stream:
            if item.channel == Channel.STDOUT and item.body:
                await self.socket.send_bytes(self._spdy.data(pair.data, item.body))
        await self._end(pair, stream.end.error if stream.end else None)

    async def _end(self, pair: _Pair, failure: str | None) -> None:
        pair.done = True
        if failure and pair.error:
            await self.socket.send_bytes(self._spdy.data(pair.error, failure.encode()))
        for number in filter(None, (pair.error, pair.data)):
            await self.socket.send_bytes(self._spdy.data(number, b"", last=True))
        self._pairs = {key: one for key, one in self._pairs.items() if one is not pair}

    async def _drop(self, pair: _Pair) -> None:
        self._pairs = {key: one for key, one in self._pairs.items() if one is not pair}
        if pair.stream:
            await pair.stream.cancel()

    def _of(self, number: int) -> _Pair | None:
        return next((pair for pair in self._pairs.values() if number in (pair.error, pair.data)), None)
