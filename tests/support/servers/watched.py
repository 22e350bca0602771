"""A strict API server over TLS: it lists Services and EndpointSlices, and has watches of them, for its own clients."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import yaml

from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from tests.support.files import certificates
from tests.support.pods.services import endpoint, service, slice_of

KINDS = {SERVICES: ("v1", "Service"), SLICES: ("discovery.k8s.io/v1", "EndpointSlice")}
LIST = {"limit": ["0"]}
WATCH = {"watch": ["true"], "timeoutSeconds": ["240"], "allowWatchBookmarks": ["true"]}


@dataclass
class Watched:
    """The server.

    Attributes:
        pki: its keys, and those of a client (`certificates.write_cluster`).
        url: where it answers.
        items: what there is, by the collection's path.
        watches: how many there have been.
        wrong: what was asked for that nobody should.
    """

    pki: Path
    url: str
    items: dict[str, list[dict[str, Any]]]
    watches: int = 0
    wrong: list[str] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _version: int = 1
    _queues: list[tuple[str, asyncio.Queue[bytes]]] = field(default_factory=list)

    def kubeconfig(self, file: Path, owner: int) -> None:
        """Write that of a client, for an account."""

        def inline(name: str) -> str:
            return b64encode((self.pki / name).read_bytes()).decode()

        cluster = {"server": self.url, "certificate-authority-data": inline("ca.crt")}
        user = {"client-certificate-data": inline("admin.crt"), "client-key-data": inline("admin.key")}
        written = {
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "current-context": "c",
        }
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(written))
        for each in (file.parent, file):
            with suppress(PermissionError):
                os.chown(each, owner, owner)

    def change(self, path: str, kind: str, one: dict[str, Any]) -> None:
        """Have watches say that something changed."""
        self.loop.call_soon_threadsafe(self._say, path, {"type": kind, "object": one})

    def break_off(self, line: dict[str, Any] | None = None) -> None:
        """End all watches as the server does after their time, or with an error."""

        def end() -> None:
            for _, queue in self._queues:
                if line:
                    queue.put_nowait(_chunk(json.dumps(line).encode() + b"\n"))
                queue.put_nowait(b"0\r\n\r\n")

        self.loop.call_soon_threadsafe(end)

    def _say(self, path: str, event: dict[str, Any]) -> None:
        self._version += 1
        event["object"]["metadata"]["resourceVersion"] = str(self._version)
        for at, queue in self._queues:
            if at == path:
                queue.put_nowait(_chunk(json.dumps(event).encode() + b"\n"))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
                method, target, protocol = head[0].split(" ")
                path, _, query = target.partition("?")
                asked = parse_qs(query)
                version = asked.pop("resourceVersion", [])
                is_watch = asked == WATCH and bool(version)
                if (method, protocol) != ("GET", "HTTP/1.1") or path not in KINDS or not (is_watch or asked == LIST):
                    self.wrong.append(head[0])
                    return writer.close()
                await (self._watch(writer, path) if is_watch else self._list(writer, path))
        return writer.close()

    async def _list(self, writer: asyncio.StreamWriter, path: str) -> None:
        api, kind = KINDS[path]
        listed = {
            "kind": f"{kind}List",
            "apiVersion": api,
            "metadata": {"resourceVersion": str(self._version)},
            "items": self.items[path],
        }
        body = json.dumps(listed).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()

    async def _watch(self, writer: asyncio.StreamWriter, path: str) -> None:
        self.watches += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        mine: tuple[str, asyncio.Queue[bytes]] = (path, asyncio.Queue())
        self._queues.append(mine)
        try:
            piece = b""
            while piece != b"0\r\n\r\n":
                await writer.drain()
                piece = await mine[1].get()
                writer.write(piece)
            await writer.drain()
        finally:
            self._queues.remove(mine)


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def objects(services: int = 1, endpoints: int = 3) -> dict[str, list[dict[str, Any]]]:
    """Return so many Services, with metadata as long as a cluster's."""
    names = [f"web{number}" for number in range(services)]
    addresses = [endpoint(f"10.64.0.{number + 1}") for number in range(endpoints)]
    found = {
        SERVICES: [service(name, f"10.96.0.{9 + number}") for number, name in enumerate(names)],
        SLICES: [slice_of(name, *addresses) for name in names],
    }
    fields: dict[str, Any] = {f"f:field{number}": {} for number in range(20)}
    for one in (one for each in found.values() for one in each):
        managed = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": fields}}]
        one["metadata"] |= {"managedFields": managed, "resourceVersion": "1"}
    return found


@contextmanager
def watched(
    folder: Path, items: dict[str, list[dict[str, Any]]], listening: socket.socket | None = None
) -> Iterator[Watched]:
    """Run one on the loopback, of the network of a socket that is bound there already."""
    pki = certificates.write_cluster(folder)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    listening = listening or socket.create_server(("127.0.0.1", 0))
    made = Watched(pki, f"https://127.0.0.1:{listening.getsockname()[1]}", items)

    async def start() -> asyncio.Server:
        return await asyncio.start_server(made.serve, sock=listening, ssl=tls)

    made.loop.run_until_complete(start())
    thread = Thread(target=made.loop.run_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(), made.loop).result()
        made.loop.call_soon_threadsafe(made.loop.stop)
        thread.join()
        made.loop.close()
        listening.close()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
