"""Probes of a container: exec, HTTP, TCP and gRPC, and the thresholds that change its health."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

from isthmus.podproto.plan import Action, Probe
from isthmus.supervisor.containers import grpc

# As in the upstream kubelet.
_MOVED, _REDIRECTS = frozenset({301, 302, 303, 307, 308}), 10
_PORTS = {"http": 80, "https": 443}
# A container that just began is asked at growing distances, until these reach the period: Kubernetes allows readiness
# probes "at times other than the configured periodSeconds" to make a pod ready faster. Running a program is too much
# for it.
_FIRST_DISTANCE_S = 0.1
_EARLY = frozenset({"tcp", "http", "grpc"})
Ask = Callable[[], Awaitable[None]]


class ProbeError(Exception):
    """The probe failed."""


class Runs(Protocol):
    """A container in which a program can be run."""

    @property
    def address(self) -> str:
        """The pod's address."""

    async def ask(self, argv: Sequence[str], timeout_s: float) -> tuple[int, str]:
        """Run a program; return its exit code and the beginning of what it wrote."""


class Judge:
    """Counts consecutive results and compares them with the thresholds."""

    def __init__(self, probe: Probe, well: bool | None) -> None:
        self._needed = {True: probe.success, False: probe.failure}
        self._row = 0
        self._last: bool | None = None
        self.well = well

    def take(self, answer: bool) -> bool:
        """Count a result; return whether the health changes."""
        self._row = self._row + 1 if answer == self._last else 1
        self._last = answer
        if answer == self.well or self._row < self._needed[answer]:
            return False
        self.well = answer
        return True


async def watch(
    probe: Probe, where: Runs, well: bool | None, first_s: float, judged: Callable[[bool, bool, str], bool]
) -> None:
    """Probe periodically; for readiness, soon after the start and then at growing distances until the first success.

    Args:
        probe: what and how often.
        where: the container.
        well: the health before the first result.
        first_s: when to probe first, by the loop's clock.
        judged: is called after each failure and each new verdict, with whether the verdict is new, whether it is well,
            and why the answer was bad; returns whether to go on.
    """
    judge = Judge(probe, well)
    loop = asyncio.get_running_loop()
    is_early = well is False and probe.success == 1 and probe.action.kind in _EARLY
    distance_s = min(_FIRST_DISTANCE_S, probe.period_s) if is_early else probe.period_s
    await asyncio.sleep(max(0.0, first_s - loop.time()))
    while True:
        begun = loop.time()
        why = await failure(probe.action, where, probe.timeout_s)
        changes = judge.take(not why)
        if (changes or why) and not judged(changes, judge.well is not False, why):
            return
        await asyncio.sleep(max(0.0, begun + (probe.period_s if judge.well else distance_s) - loop.time()))
        distance_s = min(2 * distance_s, probe.period_s)


async def failure(action: Action, where: Runs, timeout_s: float) -> str:
    """Probe once; return the failure, or an empty string."""
    try:
        await asyncio.wait_for(_KINDS[action.kind](action, where, timeout_s), timeout_s)
    except TimeoutError:
        return f"no answer within {timeout_s} s"
    # ValueError: a line without an end, an address that is none.
    except (ProbeError, OSError, ssl.SSLError, grpc.GrpcError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


async def _exec(action: Action, where: Runs, timeout_s: float) -> None:
    code, said = await where.ask(action.argv, timeout_s)
    if code:
        raise ProbeError(f"exit code {code}: {said.strip()[:1000]}".removesuffix(": "))


async def _tcp(action: Action, where: Runs, timeout_s: float) -> None:
    _, writer = await asyncio.open_connection(action.host or where.address, action.port)
    writer.close()


async def _grpc(action: Action, where: Runs, timeout_s: float) -> None:
    await grpc.check(action.host or where.address, action.port or 0, action.service)


async def _http(action: Action, where: Runs, timeout_s: float) -> None:
    host = action.host or where.address
    for _ in range(_REDIRECTS + 1):
        status, location = await _ask_http(action, host)
        if not 200 <= status < 400:
            raise ProbeError(f"HTTP status {status}")
        followed = _followed(action, host, location) if status in _MOVED else None
        if followed is None:
            return
        action = followed
    raise ProbeError(f"more than {_REDIRECTS} redirects")


async def _ask_http(action: Action, host: str) -> tuple[int, str]:
    """Send one request; return its status, and where it says to go instead."""
    port = action.port or 0
    tls: Any = _unverified() if action.scheme.lower() == "https" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        writer.write(request(action, host, port))
        await writer.drain()
        status = _status(await reader.readline())
        return status, await _location(reader) if status in _MOVED else ""
    finally:
        writer.close()


async def _location(reader: asyncio.StreamReader) -> str:
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "location":
            return value.strip()
    return ""


def _followed(action: Action, host: str, location: str) -> Action | None:
    """Return the request that a redirect asks for; None for another host's, which says nothing of this container."""
    scheme, port = action.scheme.lower(), action.port or 0
    name = f"[{host}]" if ":" in host else host
    url = urlsplit(urljoin(f"{scheme}://{name}:{port}{action.path}", location))
    if not location or url.hostname != host or url.scheme not in _PORTS:
        return None
    path = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    return action._replace(scheme=url.scheme, port=url.port or _PORTS[url.scheme], path=path)


def request(action: Action, host: str, port: int) -> bytes:
    """Return the request of an HTTP probe or hook.

    Raises:
        ProbeError: a header that would be two.
    """
    usual = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/isthmus", "Accept": "*/*", "Connection": "close"}
    given = dict(action.headers)
    for name in given:
        for old in [old for old in usual if old.lower() == name.lower()]:
            del usual[old]
    path = action.path if action.path.startswith("/") else f"/{action.path}"
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
    # As in Kubernetes, certificates are not verified.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _sleep(action: Action, where: Runs, timeout_s: float) -> None:
    await asyncio.sleep(action.seconds)


_KINDS = {"exec": _exec, "tcp": _tcp, "grpc": _grpc, "http": _http, "sleep": _sleep}
