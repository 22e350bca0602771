"""The connection to the kubelet: dialled again and again, never needed once the plan is there.

The kubelet moves: `kubelet.json` is read at each try. Both sides show certificates; the kubelet's has the name
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

SERVER_NAME = "isthmus-kubelet"
# A kubelet that comes back waits 5 s for the supervisors of pods that shall stop, then Slurm ends these without a hook.
FIRST_S, LONGEST_S = 0.2, 2.0
CONNECT_S = 15.0
READ_S = 5.0
FLUSH_S = 5.0


class Listener(Protocol):
    """Who takes what the kubelet sends."""

    def hello(self) -> Message:
        """Return what to say first."""

    def report(self) -> Message:
        """Return the report."""

    async def message(self, message: Message) -> None:
        """Take a message; what it raises ends the connection."""

    async def data(self, data: Data) -> None:
        """Take bytes of a stream."""

    async def gone(self) -> None:
        """The connection is gone; its streams are."""


class Channel:
    """The supervisor's end.

    Args:
        folder: the pod's; has kubelet.json and credential/.
        listener: is told.
        call: runs what reads the home, for so many seconds at most.
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
        pause_s = FIRST_S
        told = ""
        while True:
            try:
                reader, writer = await asyncio.wait_for(self._connect(), CONNECT_S)
                self._writer = writer
                pause_s, told = FIRST_S, ""
                await self._serve(reader, writer)
            except asyncio.CancelledError:
                await self._flush()
                raise
            except (TimeoutError, OSError, ssl.SSLError, ValueError, EOFError, FrameError) as error:
                why = f"the kubelet is not there: {error or type(error).__name__}"
                if why != told:
                    say(why)
                told = why
            finally:
                await self._drop()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_S)

    def report_changed(self) -> None:
        """Have the report sent, once however often it changes meanwhile."""
        self._sent.clear()
        self._changed.set()

    async def settled(self, timeout_s: float) -> None:
        """Wait until the last report is with the kubelet, or the time is over."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._sent.wait(), timeout_s)

    async def send(self, frame: bytes) -> None:
        """Send a frame; without a connection it is lost, as its stream is."""
        writer = self._writer
        if writer is not None:
            with suppress(OSError, ssl.SSLError):
                writer.write(frame)
                await writer.drain()

    async def end(self, stream: int, exit_code: int | None, error: str | None) -> None:
        """Say that a stream is over."""
        await self.send(frames.message({"type": "end", "stream": stream, "exit_code": exit_code, "error": error}))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            self._known = await self._call(self._look, READ_S)
        except (OSError, ValueError) as error:
            # A home that is gone for a while: the kubelet is most likely where it was.
            if self._known is None:
                raise
            say(f"{self._folder} cannot be read: {error}; the kubelet is looked for where it was")
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
        """Hang up when what was written is with the kubelet; drain lets some of it wait."""
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
    """Return TLS 1.3 with a pod's credential; the CA there is the only one believed.

    Raises:
        OSError: a file is missing or wrong (ssl.SSLError is one).
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(folder / names.AUTHORITY)
    context.load_cert_chain(folder / names.CERTIFICATE, folder / names.KEY)
    return context
