"""Probes: what a container is asked, and when the answers change what it is taken for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from . import grpc
from .plan import Action, Probe

Ask = Callable[[], Awaitable[None]]


class ProbeError(Exception):
    """The answer was none, or a bad one."""


class Runs(Protocol):
    """A container in which a program can be run."""

    @property
    def address(self) -> str:
        """The pod's address."""

    async def ask(self, argv: list[str], timeout_s: float) -> tuple[int, str]:
        """Run a program; return its exit code and the beginning of what it wrote."""


class Judge:
    """Counts answers in a row; says when they change the verdict."""

    def __init__(self, probe: Probe, well: bool | None) -> None:
        self._needed = {True: probe["success"], False: probe["failure"]}
        self._row = 0
        self._last: bool | None = None
        self.well = well

    def take(self, answer: bool) -> bool:
        """Take an answer; return whether the verdict changes."""
        self._row = self._row + 1 if answer == self._last else 1
        self._last = answer
        if answer == self.well or self._row < self._needed[answer]:
            return False
        self.well = answer
        return True


async def watch(probe: Probe, where: Runs, well: bool | None, told: Callable[[bool, str], bool]) -> None:
    """Ask again and again.

    Args:
        probe: what and how often.
        where: the container.
        well: what it is taken for before the first answer.
        told: is called with each new verdict and the last failure; returns whether to go on.
    """
    judge = Judge(probe, well)
    await asyncio.sleep(probe["initial_delay_s"])
    loop = asyncio.get_running_loop()
    while True:
        begun = loop.time()
        why = await failure(probe, where, probe["timeout_s"])
        if judge.take(not why) and not told(not why, why):
            return
        await asyncio.sleep(max(0.0, begun + probe["period_s"] - loop.time()))


async def failure(action: Action, where: Runs, timeout_s: float) -> str:
    """Ask once; return why the answer is bad, empty when it is good."""
    try:
        await asyncio.wait_for(_KINDS[action["kind"]](action, where, timeout_s), timeout_s)
    except asyncio.TimeoutError:
        return f"no answer within {timeout_s} s"
    except (ProbeError, OSError, ssl.SSLError, grpc.GrpcError) as error:
        return str(error) or type(error).__name__
    return ""


async def _exec(action: Action, where: Runs, timeout_s: float) -> None:
    code, said = await where.ask(action["argv"], timeout_s)
    if code:
        raise ProbeError(f"exit code {code}: {said.strip()[:1000]}")


async def _tcp(action: Action, where: Runs, timeout_s: float) -> None:
    _, writer = await asyncio.open_connection(action["host"] or where.address, action["port"])
    writer.close()


async def _grpc(action: Action, where: Runs, timeout_s: float) -> None:
    await grpc.check(action["host"] or where.address, action["port"] or 0, action["service"])


async def _http(action: Action, where: Runs, timeout_s: float) -> None:
    host, port = action["host"] or where.address, action["port"] or 0
    tls: Any = _unverified() if action["scheme"].lower() == "https" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        writer.write(request(action, host, port))
        await writer.drain()
        line = await reader.readline()
        status = _status(line)
    finally:
        writer.close()
    if not 200 <= status < 400:
        raise ProbeError(f"HTTP status {status}")


def request(action: Action, host: str, port: int) -> bytes:
    """Return the request of an HTTP probe or hook.

    Raises:
        ProbeError: a header that would be two.
    """
    usual = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/isthmus", "Accept": "*/*", "Connection": "close"}
    given = dict(action["headers"])
    for name in given:
        for old in [old for old in usual if old.lower() == name.lower()]:
            del usual[old]
    path = action["path"] if action["path"].startswith("/") else f"/{action['path']}"
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**usual, **given}.items())]
    if any("\n" in line or "\r" in line for line in lines):
        raise ProbeError("a line break in a header or path")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _status(line: bytes) -> int:
    words = line.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ProbeError("the answer is no HTTP")
    return int(words[1])


def _unverified() -> ssl.SSLContext:
    # As in Kubernetes: a probe asks whether somebody answers, not who.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _sleep(action: Action, where: Runs, timeout_s: float) -> None:
    await asyncio.sleep(action["seconds"])


_KINDS = {"exec": _exec, "tcp": _tcp, "grpc": _grpc, "http": _http, "sleep": _sleep}
