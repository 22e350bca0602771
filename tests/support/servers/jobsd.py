"""isthmus-jobsd with a real munged and TLS, on a Slurm that is none, and users' kubelets that connect to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

from isthmus.clients import job_feed as client
from isthmus.clients import munge
from isthmus.clients.job_feed import Connection, Source
from isthmus.jobs.doors import Bounds
from isthmus.jobs.hub import Hub
from isthmus.jobs.service import Service
from isthmus.model import job_feed
from isthmus.model.job_feed import Delta, Hello
from tests.support.fakes.shared_slurm import SharedSlurm
from tests.support.files import certificates
from tests.support.servers import munged

Result = TypeVar("Result")

ALICE, BOB = 1001, 1002
TIMEOUT_S = 20


@contextlib.contextmanager
def kept_keys(folder: Path) -> Iterator[SimpleNamespace]:
    """Give an authority, and the munged of all hosts."""
    certificates.write(folder / "tls")
    with munged.running() as daemon:
        daemon.put_on_path(folder / "bin")
        yield SimpleNamespace(tls=folder / "tls", munge=daemon, bin=folder / "bin")


class Site:
    """A controller with jobsd, and users."""

    def __init__(self, keys: SimpleNamespace) -> None:
        self.keys, self.slurm, self.bounds = keys, SharedSlurm(), Bounds()
        self.hub, self.port = Hub(self.slurm), 0
        self.slurm.set(ALICE, "1", "RUNNING", "alice's pod")
        self.slurm.set(BOB, "2", "RUNNING", "bob's pod")

    def run(self, use: Callable[[], Awaitable[Result]]) -> Result:
        """Run `use` beside it."""

        async def both() -> Result:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.keys.tls / "etcd.crt", self.keys.tls / "etcd.key")
            known = {ALICE, BOB}.__contains__
            service = Service(self.hub, context, os.getuid(), munge.opened, known, self.bounds)
            self.port = service.listen("127.0.0.1", 0)
            tasks = [asyncio.create_task(each.run()) for each in (self.hub, service)]
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    return await use()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

        return asyncio.run(both())

    async def connected(self, uid: int) -> Connection:
        source = Source("127.0.0.1", self.port, self.keys.tls / "ca.crt")
        return await client.connect(source, self.keys.munge.of(uid))

    async def reported(self, connection: Connection) -> Delta:
        """Return the first words that have jobs."""
        while not (update := await connection.read(TIMEOUT_S)).jobs:
            pass
        return update.jobs

    @contextlib.asynccontextmanager
    async def stranger(
        self, local: str = "127.0.0.1"
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, Hello]]:
        """A connection with TLS, before it has said who it is."""
        context = ssl.create_default_context(cafile=str(self.keys.tls / "ca.crt"))
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context, local_addr=(local, 0), server_hostname="127.0.0.1"
        )
        try:
            yield reader, writer, job_feed.read_hello(await reader.readline())
        finally:
            writer.transport.abort()

    async def answer_to(self, credential: Callable[[Hello], str]) -> str:
        """Return what a stranger hears who sends a credential, made of the hello."""
        async with self.stranger() as (reader, writer, hello):
            writer.write(job_feed.write_credential(credential(hello)))
            with contextlib.suppress(ConnectionError):
                return (await reader.read(1 << 16)).decode()
            return ""
