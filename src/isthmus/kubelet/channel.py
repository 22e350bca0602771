"""The TLS server that supervisors connect to. The client certificate identifies the pod: it reports only on itself.

A connection multiplexes reports and streams (exec, logs, forwarded ports), each with a flow-control window
(`podproto.windows`): a slow reader delays its own stream alone. Supervisors of pods that were started by
an earlier release may know no windows; there it delays the pod's other streams until its own is cancelled.
Every message is validated as it arrives (`reports`); an invalid one closes that pod's connection and affects no other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from isthmus.podproto import WINDOWS, frames, reports, versions, windows
from isthmus.podproto.frames import Data, FrameError
from isthmus.podproto.reports import ReportError
from isthmus.podproto.versions import VersionError

_HELLO_S = 30.0
# A node that crashes sends no FIN: keepalive closes its connection after a minute (tcp(7)).
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
# Limit of a message; the API server would reject the status of a longer report.
_MESSAGE_BYTES = 1 << 20
# asyncio's read buffer for each TLS connection: most of the memory of an idle pod in the kubelet.
sslproto.SSLProtocol.max_size = 32 << 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a slow reader of a supervisor without windows is waited for.

    Attributes:
        queue: frames that may be unread.
        stuck_s: for how long, before the stream is cancelled.
    """

    queue: int = 128
    stuck_s: float = 20.0


class StreamEnded(Exception):  # noqa: N818  an end, good or bad
    """A stream's end.

    Attributes:
        exit_code: of the program; None if none was run.
        error: why the stream failed; None if it ended normally.
        is_gone: the connection was lost.
    """

    def __init__(self, exit_code: int | None, error: str | None, *, is_gone: bool = False) -> None:
        self.exit_code = exit_code
        self.error = error
        self.is_gone = is_gone
        super().__init__(error or f"exit code {exit_code}")


GONE = StreamEnded(None, "the pod's supervisor disconnected", is_gone=True)


class Stream:
    """One exec, log or forwarded port; iterating yields the data that the pod sends, until `end` is set."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.number = number
        self.end: StreamEnded | None = None
        self._connection = connection
        self._incoming = windows.Incoming() if connection.has_windows else None
        self._outgoing = windows.Outgoing() if connection.has_windows else None
        self._queue: asyncio.Queue[Data | None] = asyncio.Queue(
            0 if connection.has_windows else connection.patience.queue
        )

    async def send(self, channel: int, body: bytes) -> None:
        """Send bytes to the pod within its window; no bytes close the channel. Ignored after the end."""
        for chunk in frames.chunks(body):
            if self._outgoing is None or await self._outgoing.take(chunk):
                await self._connection.write(frames.data(self.number, channel, chunk))

    def granted(self, count: int) -> None:
        """Grant the pod a larger window."""
        if self._outgoing:
            self._outgoing.add(count)

    async def __aiter__(self) -> AsyncIterator[Data]:
        """Yield received data until the end."""
        while (item := await self._queue.get()) is not None:
            yield item
            if self._incoming and (count := self._incoming.taken(item.body)) and self.end is None:
                await self._connection.send(windows.grant(self.number, count))

    async def cancel(self) -> None:
        """Cancel the stream."""
        self._connection.forget(self.number)
        if self.end is None:
            self.finish(StreamEnded(None, "cancelled"))
            await self._connection.send({"type": "cancel", "stream": self.number})

    async def feed(self, item: Data) -> None:
        """Queue data from the pod.

        Raises:
            FrameError: the data exceed the window.
        """
        if self._incoming:
            self._incoming.received(item.body)
        if self.end is None and not await self._put(item):
            await self.cancel()

    async def over(self, end: StreamEnded) -> None:
        """Note the end; the reader still gets all data received before it."""
        if self._outgoing:
            self._outgoing.close()
        if self.end is None:
            self.end = end
            if not await self._put(None):
                self.end = StreamEnded(None, "cancelled")
                self.finish(self.end)

    async def _put(self, item: Data | None) -> bool:
        try:
            async with asyncio.timeout(self._connection.patience.stuck_s):
                await self._queue.put(item)
        except TimeoutError:
            return False
        return True

    def finish(self, end: StreamEnded) -> None:
        """Wake the reader: no more data follows, and unread data may be lost."""
        self.end = self.end or end
        if self._outgoing:
            self._outgoing.close()
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(None)


class Connection:
    """The connection of a pod's supervisor.

    Args:
        uid: of the pod.
        hello: its first message.
        writer: of the connection.
        patience: with slow readers.

    Raises:
        VersionError: no protocol version in common.
    """

    def __init__(
        self, uid: str, hello: dict[str, Any], writer: asyncio.StreamWriter, patience: Patience | None = None
    ) -> None:
        self.uid = uid
        self.patience = patience or Patience()
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
        """Send a message; it is lost when the supervisor has just disconnected, which asks again when it is back."""
        await self.write(frames.message(message))

    async def write(self, frame: bytes) -> None:
        """Send a frame."""
        try:
            self._writer.write(frame)
            await self._writer.drain()
        except (OSError, ssl.SSLError) as error:
            _log.debug("pod %s disconnected: %s", self.uid, error)

    async def open(self, request: dict[str, Any]) -> Stream:
        """Open a stream: exec, attach, logs, forward or stats; on a closed connection it has already ended."""
        stream = Stream(self, next(self._numbers))
        if self.is_closed:
            stream.finish(GONE)
            return stream
        self._streams[stream.number] = stream
        window = {"window": windows.WINDOW_BYTES} if self.has_windows else {}
        await self.send({**request, **window, "stream": stream.number})
        return stream

    def forget(self, number: int) -> None:
        """Discard the rest of a stream."""
        self._streams.pop(number, None)

    async def take(self, item: dict[str, Any] | Data) -> bool:
        """Handle a stream's frame; return False for any other message."""
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
    """Observer of supervisors' connections."""

    async def connected(self, connection: Connection) -> None:
        """A supervisor has connected."""

    def reported(self, connection: Connection, report: dict[str, Any]) -> None:
        """A supervisor has sent a report."""

    def left(self, connection: Connection) -> None:
        """A supervisor has disconnected."""


class ChannelServer:
    """Accepts supervisors and keeps their connections by pod UID.

    Args:
        listener: is notified.
        patience: with slow readers.
    """

    def __init__(self, listener: Listener, patience: Patience | None = None) -> None:
        self._listener, self._patience = listener, patience or Patience()
        self._there: dict[str, Connection] = {}
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen and return the port; port 0 chooses a free one."""
        return await self.serve(bound(address, port), tls)

    async def serve(self, port: socket.socket, tls: ssl.SSLContext) -> int:
        """Listen on a port that was bound before; return its number."""
        self._server = await asyncio.start_server(self._serve, sock=port, ssl=tls)
        return int(port.getsockname()[1])

    def stop(self) -> None:
        """Close all connections; supervisors reconnect."""
        if self._server:
            self._server.close()
        for connection in [*self._there.values()]:
            connection.close()

    def connection(self, uid: str) -> Connection | None:
        """Return the connection of a pod's supervisor, or None."""
        return self._there.get(uid)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _keep_alive(writer.get_extra_info("socket"))
        name = _name(writer)
        connection = None
        try:
            async with asyncio.timeout(_HELLO_S):
                connection = _greet(name, await frames.read(reader, _MESSAGE_BYTES), writer, self._patience)
            if before := self._there.get(name):
                before.close()
            self._there[name] = connection
            await self._listener.connected(connection)
            await self._listen(connection, reader)
        except (FrameError, ReportError, VersionError, TimeoutError) as error:
            _log.warning("pod %s does not speak the protocol: %s", name, error)
        except (asyncio.IncompleteReadError, OSError, ssl.SSLError):
            _log.debug("pod %s disconnected", name)
        except Exception:
            # A failure closes one pod's connection, never the kubelet.
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
    """Bind a port, a free one for 0; connections wait in the backlog until it is served."""
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


def _greet(name: str, hello: dict[str, Any] | Data, writer: asyncio.StreamWriter, patience: Patience) -> Connection:
    if not isinstance(hello, dict) or hello["type"] != "hello":
        raise FrameError("no hello")
    if not name or hello.get("uid") != name:
        raise FrameError(f"it says that it is {hello.get('uid')}")
    return Connection(name, reports.checked_hello(hello), writer, patience)
