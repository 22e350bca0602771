"""HTTP for code without an event loop, and the words for what goes wrong; aiohttp is the one library that speaks it.

aiohttp is loaded with the first request and not before: it takes 0.16 s, which a command that asks nobody would pay at
each start. Clients with many requests at once keep a session of their own: `etcd.transport`, `kube.api`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.support.aio import aiohttp

_PIECE_BYTES = 1 << 20


class NoAnswerError(OSError):
    """No whole answer came; the message says why."""


class ClosedError(NoAnswerError):
    """The client was closed; no answer will come."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, whatever its status."""

    status: int
    reason: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Limits:
    """What an answer may take.

    Attributes:
        total_s: from the request to its last byte.
        content_bytes: of its content; more is no answer.
    """

    total_s: float
    content_bytes: int


def ask(
    method: str,
    url: str,
    limits: Limits,
    *,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    socket: Path | None = None,
) -> Answer:
    """Ask once, by no proxy; no redirection is followed.

    Args:
        method: GET, PUT ...
        url: http or https.
        limits: of the answer.
        tls: authorities that the server's certificate is verified by; None: the host's.
        headers: more of them.
        body: what is sent.
        socket: a UNIX socket that is asked, wherever the URL points.

    Raises:
        NoAnswerError: no answer within the limits.
    """
    return asyncio.run(_ask(method, url, limits, tls, headers, body, socket))


async def _ask(
    method: str,
    url: str,
    limits: Limits,
    tls: ssl.SSLContext | None,
    headers: Mapping[str, str] | None,
    body: bytes | None,
    socket: Path | None,
) -> Answer:
    from isthmus.support.aio import aiohttp

    timeout = aiohttp.ClientTimeout(total=limits.total_s)
    if tls is None and url.startswith("https:"):
        tls = ssl.create_default_context()
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=_connector(socket)) as session,
            session.request(method, url, ssl=tls or True, headers=headers, data=body, allow_redirects=False) as answer,
        ):
            return Answer(answer.status, answer.reason or "", await read(answer, limits.content_bytes))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NoAnswerError(reason(error)) from error


def _connector(socket: Path | None) -> aiohttp.BaseConnector | None:
    from isthmus.support.aio import aiohttp

    return aiohttp.UnixConnector(path=str(socket)) if socket else None


async def read(answer: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Return an answer's content.

    Raises:
        ValueError: it is larger.
    """
    content = bytearray()
    async for piece in answer.content.iter_chunked(_PIECE_BYTES):
        content += piece
        if len(content) > most_bytes:
            raise ValueError(f"an answer of more than {most_bytes} bytes")
    return bytes(content)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield whole lines of any length, without the empty ones: aiohttp's own reader has a limit for one line."""
    parts: list[bytes] = []
    while chunk := await content.readany():
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for each in rest:
            if line := b"".join(parts):
                yield line
            parts = [each]


def reason(error: Exception) -> str:
    """Say in a few words why there is no answer."""
    from isthmus.support.aio import aiohttp

    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"TLS: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"TLS: {error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _of_system(error.os_error)
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "cut off"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _of_system(error: OSError) -> str:
    # asyncio puts the address in place of the system's words; a resolver's numbers are negative.
    number = error.errno or 0
    return os.strerror(number) if number > 0 else str(error.strerror or error)
