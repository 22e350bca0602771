"""Connections to etcd's members, for several threads: an event loop in a thread of its own has them all.

A thread that asks waits for its answer alone. What another thread closes ends at once for the one that reads, as both
are done by the loop.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from isthmus.clients import http
from isthmus.clients.http import Answer, ClosedError, NoAnswerError
from isthmus.support.tls import ClientTls

if TYPE_CHECKING:
    from isthmus.support.aio import aiohttp

Result = TypeVar("Result")

# How long the end of all connections is waited for.
_END_S = 5.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long etcd is waited for.

    Attributes:
        connect_s: until a connection is there.
        silence_s: between two pieces of an answer, and before the first one.
    """

    connect_s: float
    silence_s: float


@dataclass(frozen=True, slots=True)
class _Running:
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession
    ended: asyncio.Event

    def end(self, thread: threading.Thread) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)
        # The collector may do this in the loop's own thread.
        if threading.current_thread() is not thread:
            thread.join(_END_S)


class Stream:
    """An answer that comes in lines; one thread reads it, any may close it."""

    def __init__(self, transport: Transport, answer: aiohttp.ClientResponse) -> None:
        self.status = answer.status
        self._transport, self._answer = transport, answer

    def __enter__(self) -> Self:
        """Close it at the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def lines(self) -> Iterator[bytes]:
        """Yield its lines.

        Raises:
            NoAnswerError: it broke off, or was closed.
        """
        found = http.lines(self._answer.content)
        while (line := self._transport.wait_for(_next(found))) is not None:
            yield line

    def text(self) -> str:
        """Return all of it.

        Raises:
            NoAnswerError: it broke off.
        """
        return self._transport.wait_for(self._answer.text())

    def close(self) -> None:
        """Close its connection; who reads is not kept waiting."""
        self._transport.soon(self._answer)


class Transport:
    """Posts JSON to servers that trust the client's certificate."""

    def __init__(self, tls: ClientTls) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        self._closed = False
        ready: Future[_Running] = Future()
        thread = threading.Thread(target=asyncio.run, args=(_serve(ready),), name="etcd", daemon=True)
        thread.start()
        self._running = ready.result()
        self._end = weakref.finalize(self, self._running.end, thread)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], waiting: Waiting) -> Answer:
        """Return a whole answer.

        Raises:
            NoAnswerError: none came.
            OSError: the certificates cannot be read.
        """
        return self.wait_for(self._post(url, body, headers, waiting))

    def stream(self, url: str, body: bytes, headers: Mapping[str, str], waiting: Waiting) -> Stream:
        """Return an answer as it begins.

        Raises:
            NoAnswerError: none came.
            OSError: the certificates cannot be read.
        """
        return Stream(self, self.wait_for(self._open(url, body, headers, waiting)))

    def close(self) -> None:
        """Close all connections; what is still read ends."""
        with self._lock:
            self._closed = True
        self._end()

    def wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what comes of work in the loop.

        Raises:
            NoAnswerError: nothing came of it.
        """
        from isthmus.support.aio import aiohttp

        with self._lock:
            if self._closed:
                work.close()
                raise ClosedError("the client was closed")
            future = asyncio.run_coroutine_threadsafe(work, self._running.loop)
        try:
            return future.result()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoAnswerError(http.reason(error)) from error
        except CancelledError as error:
            raise ClosedError("the client was closed") from error
        finally:
            # Of a thread that was interrupted.
            future.cancel()

    def soon(self, answer: aiohttp.ClientResponse) -> None:
        """Close an answer."""
        with self._lock:
            if not self._closed:
                self._running.loop.call_soon_threadsafe(answer.close)

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], waiting: Waiting) -> Answer:
        async with await self._open(url, body, headers, waiting) as answer:
            return Answer(answer.status, answer.reason or "", await answer.read())

    async def _open(
        self, url: str, body: bytes, headers: Mapping[str, str], waiting: Waiting
    ) -> aiohttp.ClientResponse:
        from isthmus.support.aio import aiohttp

        timeout = aiohttp.ClientTimeout(connect=waiting.connect_s, sock_read=waiting.silence_s)
        whole = {**headers, "Content-Type": "application/json"}
        tls = self._tls.context()
        return await self._running.session.post(
            url, data=body, headers=whole, timeout=timeout, ssl=tls, allow_redirects=False
        )


async def _serve(ready: Future[_Running]) -> None:
    from isthmus.support.aio import aiohttp

    # As many connections as threads ask: they are the bound. No proxy and no netrc file of the environment's gets hold
    # of what goes to etcd, as none is looked for.
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        ended = asyncio.Event()
        ready.set_result(_Running(asyncio.get_running_loop(), session, ended))
        await ended.wait()


async def _next(found: AsyncIterator[bytes]) -> bytes | None:
    return await anext(found, None)
