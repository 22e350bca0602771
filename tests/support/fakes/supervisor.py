"""A supervisor that runs nothing: it dials the kubelet with a pod's credential and answers as a pod would.

exec echoes its input and ends with status 7; a log has three lines; port 8080 answers in upper case, all others refuse.
What it is reported and does not know is an error of the test.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

from isthmus.podproto import WINDOWS, frames, windows
from isthmus.podproto.frames import Channel, Data

OPEN_PORT = 8080
LOG = b"one\ntwo\nthree\n"


class FakeSupervisor:
    """One pod's supervisor.

    Args:
        folder: the pod's, with kubelet.json and credential.
        job: it says it runs in.
        features: it knows; without windows it is one of an earlier release.
    """

    def __init__(self, folder: Path, job: str, features: tuple[str, ...] = (WINDOWS,)) -> None:
        self.folder, self.job, self.features = folder, job, features
        # Of each stream: what it may still send, and what may still come.
        self.outgoing: dict[int, windows.Outgoing] = {}
        self.incoming: dict[int, windows.Incoming] = {}
        self.plans: list[dict[str, Any]] = []
        self.stops: list[int] = []
        self.updates: list[list[Any]] = []
        self.ephemeral: list[dict[str, Any]] = []
        # Names of containers with their new plan; None: there is no image yet.
        self.replaced: list[tuple[str, dict[str, Any] | None]] = []
        # The table as it was when the plan came, and as it is.
        self.first_services: dict[str, list[Any]] | None = None
        self.services: dict[str, list[Any]] = {}
        self.service_messages = 0
        self.services_error = ""
        self.unknown: list[Any] = []
        self.address = "10.64.0.9"
        self.sequence = 0
        self.last: dict[str, Any] = {}
        self._kinds: dict[int, dict[str, Any]] = {}
        self.on_plan: Any = None
        self.on_stop: Any = None
        self.on_replace: Any = None
        # Where it hangs up instead of answering.
        self.leaves_at = ""
        self.closed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Dial and say hello; messages are then taken until `leave`."""
        there = json.loads((self.folder / "kubelet.json").read_text())
        credential = self.folder / "credential"
        tls = ssl.create_default_context(cafile=str(credential / "ca.crt"))
        tls.load_cert_chain(credential / "tls.crt", credential / "tls.key")
        self.reader, self.writer = await asyncio.open_connection(there["address"], there["port"], ssl=tls)
        await self.say(
            {
                "type": "hello",
                "version": 1,
                **({"features": list(self.features)} if self.features else {}),
                "uid": self.folder.name,
                "job": self.job,
                "node": "c1",
                "addresses": [self.address],
                "host_address": "10.0.0.9",
                "has_plan": bool(self.plans),
            }
        )
        if self.last:
            await self.say(self.last)
        self.closed.clear()
        self._task = asyncio.create_task(self._listen())

    async def leave(self) -> None:
        """Hang up."""
        if self._task:
            self._task.cancel()
            self.writer.close()
            self._task = None

    async def report(
        self, phase: str, containers: dict[str, Any], *, write: bool = True, sigterm: bool = False
    ) -> None:
        """Report as the contract has it, on disk first."""
        self.sequence += 1
        report = {
            "schema": 1,
            "uid": self.folder.name,
            "job": self.job,
            "node": "c1",
            "addresses": [self.address],
            "host_address": "10.0.0.9",
            "sequence": self.sequence,
            "phase": phase,
            "started": "2026-01-01T00:00:00Z",
            "error": None,
            "services_error": self.services_error,
            "sigterm": sigterm,
            "containers": containers,
        }
        if write:
            (self.folder / "report.json").write_text(json.dumps(report))
        self.last = {"type": "report", **report}
        if self._task:
            # What the kubelet misses it gets at the next hello.
            with suppress(OSError):
                await self.say(self.last)

    async def say(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self.writer.write(frames.message(message))
        await self.writer.drain()

    async def _listen(self) -> None:
        while True:
            try:
                item = await frames.read(self.reader)
            except (asyncio.IncompleteReadError, OSError):
                self.closed.set()
                return
            if isinstance(item, Data):
                await self._take_data(item)
            else:
                await self._take(item)

    async def _take(self, item: dict[str, Any]) -> None:
        kind = item["type"]
        if kind == self.leaves_at:
            await self.leave()
        elif kind == "plan":
            self.plans.append(item["plan"])
            self.first_services = dict(self.services)
            if self.on_plan:
                await self.on_plan()
        elif kind == "stop":
            self.stops.append(item["grace_s"])
            if self.on_stop:
                await self.on_stop()
        elif kind == "update":
            self.updates.append(item["volumes"])
        elif kind == "ephemeral":
            self.ephemeral.append(item["container"] | {"target": item["target"]})
        elif kind == "replace":
            self.replaced.append((item["name"], item["container"]))
            if self.on_replace:
                await self.on_replace(item["name"], item["container"])
        elif kind == "services":
            self._take_services(item)
        elif kind in ("exec", "attach", "forward", "logs", "stats"):
            self._kinds[item["stream"]] = item
            await self._begin(item)
        elif kind == "window" and item["stream"] in self.outgoing:
            self.outgoing[item["stream"]].add(item["bytes"])
        elif kind != "cancel":
            self.unknown.append(item)

    def _take_services(self, item: dict[str, Any]) -> None:
        self.service_messages += 1
        if item["whole"]:
            self.services.clear()
        for key in item["drop"]:
            del self.services[key]
        self.services.update((" ".join(map(str, row[:3])), row[3:]) for row in item["set"])

    async def _begin(self, item: dict[str, Any]) -> None:
        stream = item["stream"]
        if WINDOWS in self.features:
            self.outgoing[stream] = windows.Outgoing(item["window"])
            self.incoming[stream] = windows.Incoming()
            await self.say(windows.grant(stream, windows.WINDOW_BYTES))
        if item["type"] == "logs":
            kept = LOG.splitlines(keepends=True)[-(item["tail"] or 3) :]
            await self._send(stream, Channel.STDOUT, b"".join(kept))
            await self._end(stream)
        elif item["type"] == "stats":
            figures = {"containers": {"main": {"cpu_ns": 5_000_000_000, "memory_bytes": 1 << 20}}}
            await self._send(stream, Channel.STDOUT, json.dumps(figures).encode())
            await self._end(stream)
        elif item["type"] == "exec":
            await self._send(stream, Channel.STDOUT, (" ".join(item["argv"]) + "\n").encode())
            await self._send(stream, Channel.STDERR, b"to stderr\n")
            if not item["stdin"]:
                await self._end(stream, 7)
        elif item["type"] == "forward" and item["port"] != OPEN_PORT:
            await self._end(stream, None, f"nothing listens on port {item['port']}")

    async def _take_data(self, item: Data) -> None:
        kind = self._kinds[item.stream]["type"]
        if item.stream in self.incoming:
            self.incoming[item.stream].received(item.body)
            if count := self.incoming[item.stream].taken(item.body):
                await self.say(windows.grant(item.stream, count))
        if item.channel == Channel.STDIN and item.body:
            await self._send(item.stream, Channel.STDOUT, item.body.upper() if kind == "forward" else item.body)
        elif item.channel == Channel.STDIN:
            await self._end(item.stream, 7)

    async def _send(self, stream: int, channel: int, body: bytes) -> None:
        for chunk in frames.chunks(body):
            if stream not in self.outgoing or await self.outgoing[stream].take(chunk):
                self.writer.write(frames.data(stream, channel, chunk))
                await self.writer.drain()

    async def _end(self, stream: int, exit_code: int | None = None, error: str | None = None) -> None:
        await self.say({"type": "end", "stream": stream, "exit_code": exit_code, "error": error})
