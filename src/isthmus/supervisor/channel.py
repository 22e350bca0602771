"""Client of the kubelet: reconnects with a backoff, and is not needed once the plan has arrived.

The kubelet may move: `kubelet.json` is read at each attempt. TLS is mutual; the kubelet's certificate has the name
SERVER_NAME whatever its address. On each connection the supervisor says hello and sends its report; streams end with
the connection they came on.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from isthmus.podproto import folder as names
from isthmus.podproto import frames
from isthmus.podproto.frames import Data, FrameError, Message
from isthmus.supervisor.home import Work
from isthmus.supervisor.runtime.processes import say
from isthmus.support.backoff import Backoff

SERVER_NAME = "isthmus-kubelet"
# A restarted kubelet waits 5 s for the supervisors of terminating pods; then Slurm ends the jobs without hooks.
FIRST_S, LONGEST_S = 0.2, 2.0
CONNECT_S = 15.0
READ_S = 5.0
FLUSH_S = 5.0


class Listener(Protocol):
    """Handler of the kubelet's messages."""

    def hello(self) -> Message:
        """Return the first message."""

    def report(self) -> Message:
        """Return the report."""

    async def message(self, message: Message) -> None:
        """Handle a message; an exception closes the connection."""

    async def data(self, data: Data) -> None:
        """Handle data of a stream."""

    async def gone(self) -> None:
        """The connection is lost, and with it its streams."""


class Channel:
    """The supervisor's side of the channel.

    Args:
        folder: the pod's; has kubelet.json and credential/.
        listener: handles messages.
        call: runs a read of the home in a thread, with a time limit in seconds.
    """

    def __init__(self, folder: Path, listener: Listener, call: Callable[[Work, float], Awaitable[Any]]) -> None:
        self._call = call
        self._known: tuple[str, int, ssl.SSLContext] | None = None
        self._folder = folder
        self._listener = listener
        self._writer: asyncio.StreamWriter | None = None
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()

    async def run(self) -> None:
        """Keep the connection; ends only when cancelled."""
        backoff = Backoff(FIRST_S, LONGEST_S)
        logged = ""
        while True:
            try:
                reader, writer = await asyncio.wait_for(self._connect(), CONNECT_S)
                self._writer = writer
                logged = ""
                backoff.reset()
                await self._serve(reader, writer)
            except asyncio.CancelledError:
                await self._flush()
                raise
            except (TimeoutError, OSError, ssl.SSLError, ValueError, EOFError, FrameError) as error:
                why = f"the kubelet is not there: {error or type(error).__name__}"
                if why != logged:
                    say(why)
                logged = why
            finally:
                await self._drop()
            await asyncio.sleep(backoff.next_s())

    def report_changed(self) -> None:
        """Schedule the report to be sent; changes until then are merged."""
        self._sent.clear()
        self._changed.set()

    async def flushed(self, timeout_s: float) -> None:
        """Wait until the last report is sent, or the time is over."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._sent.wait(), timeout_s)

    async def send(self, frame: bytes) -> None:
        """Send a frame; it is dropped without a connection, as its stream has ended."""
        writer = self._writer
        if writer is not None:
            with suppress(OSError, ssl.SSLError):
                writer.write(frame)
                await writer.drain()

    async def end(self, stream: int, exit_code: int | None, error: str | None) -> None:
        """Send the end of a stream."""
        await self.send(frames.message({"type": "end", "stream": stream, "exit_code": exit_code, "error": error}))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            self._known = await self._call(self._look, READ_S)
        except (OSError, ValueError) as error:
            # The home is unreachable for a while: the kubelet's address has most likely not changed.
            if self._known is None:
                raise
            say(f"{self._folder} cannot be read: {error}; the kubelet's last address is used")
        address, port, tls = self._known or await self._call(self._look, READ_S)
        return await asyncio.open_connection(address, port, ssl=tls, server_hostname=SERVER_NAME)

    def _look(self) -> tuple[str, int, ssl.SSLContext]:
        where = json.loads((self._folder / names.ADDRESS).read_text(encoding="utf-8"))
        return where["address"], where["port"], tls_context(self._folder / names.CREDENTIAL)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.message(self._listener.hello()))
        self._changed.set()
        reporting = asyncio.ensure_future(self._report(writer))
        try:
            while True:
                frame = await frames.read(reader)
                await (self._listener.data(frame) if isinstance(frame, Data) else self._listener.message(frame))
        except asyncio.IncompleteReadError:
            return
        finally:
            reporting.cancel()

    async def _report(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            writer.write(frames.message(self._listener.report()))
            await writer.drain()
            if not self._changed.is_set():
                self._sent.set()

    async def _flush(self) -> None:
        """Close after the buffered data are sent; drain() leaves some of them."""
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError, ssl.SSLError, asyncio.TimeoutError):
                await asyncio.wait_for(self._writer.wait_closed(), FLUSH_S)

    async def _drop(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            await self._listener.gone()


def tls_context(folder: Path) -> ssl.SSLContext:
    """Return a TLS 1.3 context with a pod's credential, which trusts only the CA in its folder.

    Raises:
        OSError: a file is missing or wrong (ssl.SSLError is one).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(folder / names.AUTHORITY)
    context.load_cert_chain(folder / names.CERTIFICATE, folder / names.KEY)
    return context
