"""The port that kubelets connect to: TLS 1.3, a munge credential of a nonce, then lines both ways (`model.job_feed`).

Who the kubelet is, munge says: its credential is of the account that runs it, of this connection's nonce, and can be
opened by this service's account alone. So one that was seen, sent elsewhere or kept opens nothing. The TLS certificate,
of the cluster's CA, says to the kubelet that this is the cluster's controller.

A reader that does not take what it is sent within seconds is dropped; it comes back, and gets a whole view.
"""

from __future__ import annotations

import asyncio
import logging
import pwd
import secrets
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from isthmus.clients.munge import MungeError, Opened
from isthmus.jobs.doors import Bounds, Bucket, Doors, Visitor
from isthmus.jobs.hub import Hub, Subscriber
from isthmus.model import job_feed
from isthmus.model.job_feed import BEAT_S, FeedMessageError, Hello
from isthmus.support.threads import Threads

_HANDSHAKE_S = 5.0
_BACKLOG = 256
# What the kernel and asyncio hold for a reader, bytes, before it has to wait.
_SENT_BYTES = 1 << 18
# A node that dies says no goodbye (tcp(7)).
_SILENT_MS = 60_000
_OPENED_AT_ONCE = 2

_log = logging.getLogger(__name__)
_BROKEN = (OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


def is_account(uid: int) -> bool:
    """Return whether a uid is somebody's: every user has 65536 others besides, in user namespaces (subuid(5))."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


class Service:
    """Lets kubelets in.

    Args:
        hub: has the jobs.
        tls: the server's.
        uid: of this process, who alone may open credentials.
        opened: opens one; blocks.
        known: whether a uid is an account; may block.
        bounds: on who connects.
    """

    def __init__(
        self,
        hub: Hub,
        tls: ssl.SSLContext,
        uid: int,
        opened: Callable[[str], Opened],
        known: Callable[[int], bool] = is_account,
        bounds: Bounds | None = None,
    ) -> None:
        self._hub, self._tls, self._uid, self._opened, self._known = hub, tls, uid, opened, known
        self._bounds = bounds or Bounds()
        self._doors = Doors(self._bounds)
        self._threads = Threads("munge", _OPENED_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None

    def listen(self, address: str, port: int) -> int:
        """Open the port; return its number."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, port), family=family, backlog=_BACKLOG)
        self._listener.setblocking(False)
        return int(self._listener.getsockname()[1])

    async def run(self) -> None:
        """Accept, for ever; ends all connections when it is cancelled."""
        assert self._listener is not None  # noqa: S101  listen comes first
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    accepted, (address, *_) = await loop.sock_accept(self._listener)
                except OSError as error:
                    _log.warning("no connection is accepted now: %s", error)
                    await asyncio.sleep(0.1)
                    continue
                self._enter(accepted, str(address))
        finally:
            self._listener.close()
            for task in self._tasks:
                task.cancel()
            self._threads.stop()

    def _enter(self, accepted: socket.socket, address: str) -> None:
        # Counted from here on, also while it does not even begin with TLS.
        visitor = Visitor(address, lambda: None)
        if not self._doors.enter(visitor):
            self._hub.counts["turned_away"] += 1
            accepted.close()
            return
        task = asyncio.get_running_loop().create_task(self._visit(visitor, accepted))
        visitor.end = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _visit(self, visitor: Visitor, accepted: socket.socket) -> None:
        writer = None
        try:
            async with asyncio.timeout(self._bounds.hello_s):
                reader, writer = await self._encrypted(accepted)
                uid = await self._who(reader, writer)
            self._doors.known(visitor)
            await self._serve(uid, reader, writer)
        except (FeedMessageError, MungeError) as error:
            self._hub.counts["refused"] += 1
            _log.warning("refused %s: %s", visitor.address, error)
            if writer:
                await self._say(writer, job_feed.write_error(str(error)))
        except _BROKEN as error:
            _log.debug("%s has gone: %s", visitor.address, error)
        finally:
            self._doors.leave(visitor)
            if writer:
                writer.transport.abort()

    async def _encrypted(self, accepted: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_MS)
        except OSError:
            accepted.close()
            raise
        # From here on it is the transport's to close.
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=job_feed.ASKED_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, accepted, ssl=self._tls, ssl_handshake_timeout=_HANDSHAKE_S
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _who(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        hello = Hello(secrets.token_hex(16), self._uid)
        writer.write(job_feed.write_hello(hello))
        credential = job_feed.read_credential(await reader.readuntil(b"\n"))
        found = await self._threads.call(self._opened, credential)
        if found.payload != hello.payload:
            raise MungeError("the credential was made for something else")
        if not await self._threads.call(self._known, found.uid):
            raise MungeError(f"uid {found.uid} is no account on the controller")
        return found.uid

    async def _serve(self, uid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        subscriber = self._hub.subscribe(uid, lambda words: None if ended.done() else ended.set_result(words))
        tasks: list[asyncio.Future[None]] = [
            asyncio.create_task(self._listen(subscriber, reader)),
            asyncio.create_task(self._send(subscriber, writer)),
        ]
        try:
            waited: set[asyncio.Future[Any]] = {ended, *tasks}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise FeedMessageError(ended.result())
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            self._hub.unsubscribe(subscriber)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, subscriber: Subscriber, reader: asyncio.StreamReader) -> None:
        bucket = Bucket(self._bounds.lines, self._bounds.lines_rate)
        while True:
            # Who sends more waits in their own connection.
            while (early_s := bucket.take()) > 0:
                await asyncio.sleep(early_s)
            self._hub.demand(subscriber, job_feed.read_demand(await reader.readuntil(b"\n")))

    async def _send(self, subscriber: Subscriber, writer: asyncio.StreamWriter) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await subscriber.due.wait()
            if (update := self._hub.update(subscriber)) is None:
                continue
            writer.write(job_feed.write_update(update))
            try:
                async with asyncio.timeout(self._bounds.send_s):
                    await writer.drain()
            except TimeoutError:
                self._hub.counts["slow"] += 1
                raise

    async def _say(self, writer: asyncio.StreamWriter, line: bytes) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                writer.write(line)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
