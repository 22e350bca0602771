"""The port that supervisors dial: who connects is told by the certificate, and one pod never speaks for another.

A connection carries reports and any number of streams (exec, logs, forwarded ports), each with a window
(`podproto.windows`): a reader who takes nothing delays his own stream alone. Supervisors of pods that were started by
an earlier release may know no windows; there he delays the pod's other streams until his own is cancelled.
What a pod says is checked as it comes (`reports`): one that says anything else loses its connection, and no more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator
from itertools import count
from typing import Any, Protocol

from isthmus.podproto import WINDOWS, frames, reports, versions, windows
from isthmus.podproto.frames import Data, FrameError
from isthmus.podproto.reports import ReportError
from isthmus.podproto.versions import VersionError

# Without windows: what a reader may leave lying, in frames, and for how long, before his stream ends.
_QUEUE = 128
_STUCK_S = 20.0
_HELLO_S = 30.0
# A node that dies says no goodbye: its connection ends when it has been silent for a minute (tcp(7)).
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
# Of a message; the API server would not take the status of a longer report.
_MESSAGE_BYTES = 1 << 20
# asyncio reads what comes by TLS into a buffer for each connection: most of what an idle pod costs a kubelet.
sslproto.SSLProtocol.max_size = 32 << 10

_log = logging.getLogger(__name__)


class StreamEnded(Exception):  # noqa: N818  an end, good or bad
    """A stream's end.

    Attributes:
        exit_code: of the program that was run; None where there was none.
        error: why it broke off; None for a good end.
        is_gone: it broke off with the connection.
    """

    def __init__(self, exit_code: int | None, error: str | None, *, is_gone: bool = False) -> None:
        self.exit_code = exit_code
        self.error = error
        self.is_gone = is_gone
        super().__init__(error or f"exit code {exit_code}")


GONE = StreamEnded(None, "the pod's supervisor went away", is_gone=True)


class Stream:
    """One exec, log or forwarded port; iterate for what the pod sends, until `end` is set."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.number = number
        self.end: StreamEnded | None = None
        self._connection = connection
        self._incoming = windows.Incoming() if connection.has_windows else None
        self._outgoing = windows.Outgoing() if connection.has_windows else None
        self._queue: asyncio.Queue[Data | None] = asyncio.Queue(0 if connection.has_windows else _QUEUE)

    async def send(self, channel: int, body: bytes) -> None:
        """Send bytes into the pod as fast as it takes them; none close the channel. Of no use after the end."""
        for chunk in frames.chunks(body):
            if self._outgoing is None or await self._outgoing.take(chunk):
                await self._connection.write(frames.data(self.number, channel, chunk))

    def granted(self, count: int) -> None:
        """Send so many bytes more."""
        if self._outgoing:
            self._outgoing.add(count)

    async def __aiter__(self) -> AsyncIterator[Data]:
        """Yield what comes, until the end."""
        while (item := await self._queue.get()) is not None:
            yield item
            if self._incoming and (count := self._incoming.taken(item.body)) and self.end is None:
                await self._connection.send(windows.grant(self.number, count))

    async def cancel(self) -> None:
        """Have the pod end it; nothing more is wanted."""
        self._connection.forget(self.number)
        if self.end is None:
            self.finish(StreamEnded(None, "cancelled"))
            await self._connection.send({"type": "cancel", "stream": self.number})

    async def feed(self, item: Data) -> None:
        """Take what the pod has sent.

        Raises:
            FrameError: more than its window has.
        """
        if self._incoming:
            self._incoming.received(item.body)
        if self.end is None and not await self._put(item):
            await self.cancel()

    async def over(self, end: StreamEnded) -> None:
        """Take the end; the reader gets all that came before it."""
        if self._outgoing:
            self._outgoing.close()
        if self.end is None:
            self.end = end
            if not await self._put(None):
                self.end = StreamEnded(None, "cancelled")
                self.finish(self.end)

    async def _put(self, item: Data | None) -> bool:
        try:
            async with asyncio.timeout(_STUCK_S):
                await self._queue.put(item)
        except TimeoutError:
            return False
        return True

    def finish(self, end: StreamEnded) -> None:
        """Wake the reader: nothing more comes, and what he has not taken may be lost."""
        self.end = self.end or end
        if self._outgoing:
            self._outgoing.close()
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)


class Connection:
    """A pod's supervisor that is there now.

    Args:
        uid: of the pod.
        hello: what it said first.
        writer: to it.

    Raises:
        VersionError: it speaks none that this kubelet does.
    """

    def __init__(self, uid: str, hello: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.uid = uid
        self.hello = hello
        self.is_closed = False
        self.version = versions.agreed(hello)
        self.has_windows = WINDOWS in hello.get("features", ())
        self._writer = writer
        self._streams: dict[int, Stream] = {}
        self._numbers = count(1)

    @property
    def job(self) -> str:
        """The Slurm job it runs in."""
        return str(self.hello.get("job"))

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; to one that has just gone it is lost, and he asks again when he is back."""
        await self.write(frames.message(message))

    async def write(self, frame: bytes) -> None:
        """Send a frame."""
        try:
            self._writer.write(frame)
            await self._writer.drain()
        except (OSError, ssl.SSLError) as error:
            _log.debug("pod %s went away: %s", self.uid, error)

    async def open(self, request: dict[str, Any]) -> Stream:
        """Ask for a stream: exec, attach, logs, forward or stats; of one that has gone it is at its end."""
        stream = Stream(self, next(self._numbers))
        if self.is_closed:
            stream.finish(GONE)
            return stream
        self._streams[stream.number] = stream
        window = {"window": windows.WINDOW_BYTES} if self.has_windows else {}
        await self.send({**request, **window, "stream": stream.number})
        return stream

    def forget(self, number: int) -> None:
        """Drop what still comes of a stream."""
        self._streams.pop(number, None)

    async def take(self, item: dict[str, Any] | Data) -> bool:
        """Take a frame of a stream; return False for what is none of a stream's."""
        if isinstance(item, Data):
            if stream := self._streams.get(item.stream):
                await stream.feed(item)
            return True
        if item["type"] == "window" and self.has_windows:
            reports.checked_window(item)
            if stream := self._streams.get(item["stream"]):
                stream.granted(item["bytes"])
            return True
        if item["type"] != "end":
            return False
        reports.checked_end(item)
        if stream := self._streams.pop(item["stream"], None):
            await stream.over(StreamEnded(item.get("exit_code"), item.get("error")))
        return True

    def close(self) -> None:
        """End all streams and the connection."""
        for stream in self._streams.values():
            stream.finish(GONE)
        self._streams.clear()
        self.is_closed = True
        self._writer.close()


class Listener(Protocol):
    """Who wants to know of supervisors."""

    async def connected(self, connection: Connection) -> None:
        """One has said hello."""

    def reported(self, connection: Connection, report: dict[str, Any]) -> None:
        """One has reported."""

    def left(self, connection: Connection) -> None:
        """One has gone."""


class ChannelServer:
    """Listens, and knows who is there.

    Args:
        listener: is told of them.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._there: dict[str, Connection] = {}
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen; return the port, chosen free for 0."""
        return await self.serve(bound(address, port), tls)

    async def serve(self, port: socket.socket, tls: ssl.SSLContext) -> int:
        """Listen on a port that was bound before; return its number."""
        self._server = await asyncio.start_server(self._serve, sock=port, ssl=tls)
        return int(port.getsockname()[1])

    def stop(self) -> None:
        """Let everybody go; they come back."""
        if self._server:
            self._server.close()
        for connection in [*self._there.values()]:
            connection.close()

    def connection(self, uid: str) -> Connection | None:
        """Return a pod's supervisor if it is there."""
        return self._there.get(uid)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _keep_alive(writer.get_extra_info("socket"))
        name = _name(writer)
        connection = None
        try:
            async with asyncio.timeout(_HELLO_S):
                connection = _greet(name, await frames.read(reader, _MESSAGE_BYTES), writer)
            if before := self._there.get(name):
                before.close()
            self._there[name] = connection
            await self._listener.connected(connection)
            await self._listen(connection, reader)
        except (FrameError, ReportError, VersionError, TimeoutError) as error:
            _log.warning("pod %s does not speak the protocol: %s", name, error)
        except (asyncio.IncompleteReadError, OSError, ssl.SSLError):
            _log.debug("pod %s went away", name)
        except Exception:
            # One pod's connection ends, never the kubelet.
            _log.exception("connection of pod %s", name)
        finally:
            if connection and self._there.get(name) is connection:
                del self._there[name]
            (connection or writer).close()
            if connection:
                self._listener.left(connection)

    async def _listen(self, connection: Connection, reader: asyncio.StreamReader) -> None:
        while True:
            item = await frames.read(reader, _MESSAGE_BYTES)
            if await connection.take(item):
                continue
            if isinstance(item, dict) and item["type"] == "report":
                self._listener.reported(connection, reports.checked(item))
            else:
                raise FrameError(f"unexpected {item!r:.80}")


def bound(address: str, port: int) -> socket.socket:
    """Take a port, chosen free for 0; nobody is answered before it is served."""
    family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
    except OSError:
        made.close()
        raise
    return made


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _name(writer: asyncio.StreamWriter) -> str:
    certificate = writer.get_extra_info("peercert") or {}
    return next((value for ((key, value),) in certificate.get("subject", ()) if key == "commonName"), "")


def _greet(name: str, hello: dict[str, Any] | Data, writer: asyncio.StreamWriter) -> Connection:
    if not isinstance(hello, dict) or hello["type"] != "hello":
        raise FrameError("no hello")
    if not name or hello.get("uid") != name:
        raise FrameError(f"it says that it is {hello.get('uid')}")
    return Connection(name, reports.checked_hello(hello), writer)
