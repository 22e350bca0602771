"""A kubelet's connection to isthmus-jobsd: TLS to the cluster's controller, then who we are, by munge."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import munge
from isthmus.clients.munge import MungeError
from isthmus.model import job_feed
from isthmus.model.job_feed import Demand, FeedMessageError, Update

CA = Path("/etc/isthmus/ca.crt")
_CONNECT_S = 15.0


class FeedError(Exception):
    """jobsd is unreachable, or sent an invalid message; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where jobsd is.

    Attributes:
        address: of the controller, which its certificate names.
        port: of jobsd.
        ca: certificate of the cluster's authority.
    """

    address: str
    port: int
    ca: Path = CA


class Connection:
    """One that is open; `close` ends it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, timeout_s: float) -> Update:
        """Return what jobsd says next.

        Raises:
            FeedError: it said nothing in time, or ended, or said what is none of its words.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return job_feed.read_update(await self._reader.readuntil(b"\n"))
        except TimeoutError as error:
            raise FeedError(f"jobsd was silent for {timeout_s:g} s") from error
        except _BROKEN as error:
            raise FeedError(str(error) or "jobsd ended the connection") from error

    def write(self, demand: Demand) -> None:
        """Say what is wanted; lost where the connection is."""
        self._writer.write(job_feed.write_demand(demand))

    def close(self) -> None:
        """End it."""
        self._writer.transport.abort()


_BROKEN = (OSError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, FeedMessageError)


async def connect(source: Source, credential: Callable[[str, int], str] = munge.credential) -> Connection:
    """Connect, and say who we are.

    Args:
        source: where to.
        credential: makes one; blocks.

    Raises:
        FeedError: there is none, it is not the controller, or munged does not answer.
    """
    try:
        async with asyncio.timeout(_CONNECT_S):
            context = ssl.create_default_context(cafile=str(source.ca))
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            reader, writer = await asyncio.open_connection(
                source.address, source.port, ssl=context, limit=job_feed.REPORT_BYTES
            )
            try:
                hello = job_feed.read_hello(await reader.readuntil(b"\n"))
                text = await asyncio.to_thread(credential, hello.payload, hello.uid)
            except BaseException:
                writer.transport.abort()
                raise
            writer.write(job_feed.write_credential(text))
            return Connection(reader, writer)
    except (*_BROKEN, MungeError, TimeoutError) as error:
        words = str(error) or type(error).__name__
        raise FeedError(f"{source.address}:{source.port}: {words}") from error
