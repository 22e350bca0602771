"""Resumable HTTP downloads (RFC 9110, range requests), by the proxies and authorities that the environment names."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path

from isthmus.clients import http
from isthmus.support.aio import aiohttp

ATTEMPTS = 3
CONNECT_S = 15
CHUNK = 1 << 16
RESUMES, TOO_FAR = 206, 416
# What pip takes a site's own authorities from too; SSL_CERT_FILE is OpenSSL's.
_AUTHORITIES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_TEXT_BYTES = 16 << 20


class DownloadError(Exception):
    """A URL gave no whole file; the message names it."""


def fetch(url: str, path: Path, *, stall_s: float = 60, log: Callable[[str], None] = lambda text: None) -> None:
    """Download a file.

    Args:
        url: http or https; redirections are followed.
        path: where it goes; removed again when no whole file came.
        stall_s: how long the server may be silent.
        log: takes a line whenever the server has to be asked again.

    Raises:
        DownloadError: the server refuses, or each attempt was cut off.
    """
    reason = ""
    try:
        for attempt in range(ATTEMPTS):
            if attempt:
                log(f"{url}: {reason}; asking for the rest")
            reason = asyncio.run(_attempt(url, path, stall_s))
            if not reason:
                return
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)
    raise DownloadError(f"{url}: {reason}, {ATTEMPTS} times")


def read(url: str, *, stall_s: float = 60) -> str:
    """Return a small text file.

    Raises:
        DownloadError: the server does not give it.
    """
    return asyncio.run(_read(url, stall_s))


def _session(stall_s: float) -> aiohttp.ClientSession:
    authorities = next(filter(None, map(os.environ.get, _AUTHORITIES)), None)
    tls = ssl.create_default_context()
    if authorities:
        tls.load_verify_locations(**{"capath" if Path(authorities).is_dir() else "cafile": authorities})
    timeout = aiohttp.ClientTimeout(connect=CONNECT_S, sock_read=stall_s)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls), timeout=timeout, trust_env=True)


async def _read(url: str, stall_s: float) -> str:
    try:
        async with _session(stall_s) as session, session.get(url) as answer:
            _check(url, answer)
            return (await http.read(answer, _TEXT_BYTES)).decode(errors="replace")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise DownloadError(f"{url}: {http.reason(error)}") from error


async def _attempt(url: str, path: Path, stall_s: float) -> str:
    """Fetch what is missing; return why it is still not whole, or nothing."""
    have = path.stat().st_size if path.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    try:
        async with _session(stall_s) as session, session.get(url, headers=headers) as answer:
            if have and answer.status == TOO_FAR:
                path.unlink()
                return "the file there became shorter"
            _check(url, answer)
            begun = have if answer.status == RESUMES else 0
            with path.open("ab" if begun else "wb") as file:
                async for piece in answer.content.iter_chunked(CHUNK):
                    file.write(piece)
    except aiohttp.ClientPayloadError:
        # A length that was announced was not reached.
        return f"cut off after {path.stat().st_size - begun} of {answer.headers.get('Content-Length', 'more')} bytes"
    except (aiohttp.ClientError, TimeoutError) as error:
        # A server that was never reached will not be so a moment later; one that is silent may only be slow.
        if not path.exists() and not isinstance(error, aiohttp.SocketTimeoutError):
            raise DownloadError(f"{url}: {http.reason(error)}") from error
        return http.reason(error)
    return ""


def _check(url: str, answer: aiohttp.ClientResponse) -> None:
    if answer.status >= 400:
        raise DownloadError(f"{url}: {answer.status} {answer.reason}")
