"""Limits on clients of the service: every byte, and every second of silence, may be an attacker's.

A connection counts from its handshake on; it must ask within seconds, and ends whatever it does after minutes. An
address has few connections, and a budget of requests that fills slowly. All tables are bounded.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Factory = Callable[[], asyncio.Protocol]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the service.

    Attributes:
        connections: at once, in all.
        connections_each: at once, of an address.
        silent_s: after which a connection that has asked nothing ends.
        life_s: after which any connection ends: as long as the largest file may take.
        burst: requests of an address at once.
        rate: of them per second in the long run.
        addresses: that are remembered.
        body_s: how long a request's body may take.
    """

    connections: int = 128
    connections_each: int = 8
    silent_s: float = 10
    life_s: float = 900
    burst: int = 30
    rate: float = 1
    addresses: int = 4096
    body_s: float = 10


class Rates:
    """How many requests each address has left: a bucket that fills by time."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds, self._clock = bounds, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Return whether an address may ask now."""
        now = self._clock()
        left, at = self._left.pop(address, (float(self._bounds.burst), now))
        left = min(self._bounds.burst, left + (now - at) * self._bounds.rate)
        self._left[address] = (max(left - 1, 0), now) if left >= 1 else (left, now)
        # The one longest unheard of has the fullest bucket.
        while len(self._left) > self._bounds.addresses:
            self._left.popitem(last=False)
        return left >= 1


class Doors:
    """Makes the protocols of a server, and counts those that are open."""

    def __init__(self, server: Factory, bounds: Bounds) -> None:
        self.server, self.bounds = server, bounds
        self.open: Counter[str] = Counter()

    def __call__(self) -> asyncio.Protocol:
        """Make one, as asyncio asks for it."""
        return Door(self)

    def enter(self, address: str) -> bool:
        """Count a connection; return whether there is room for it."""
        self.open[address] += 1
        return self.open.total() <= self.bounds.connections and self.open[address] <= self.bounds.connections_each

    def leave(self, address: str) -> None:
        """Count it no more."""
        self.open[address] -= 1
        if not self.open[address]:
            del self.open[address]


class Door(asyncio.Protocol):
    """One connection; `inner` speaks HTTP."""

    def __init__(self, doors: Doors) -> None:
        self.asked = False
        self._doors, self._inner = doors, doors.server()
        self._address, self._let_in = "", False
        self._timers: list[asyncio.TimerHandle] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, or end it."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - asyncio makes no other for a stream
        self._address = address_of(transport)
        if not self._doors.enter(self._address):
            transport.abort()
            return
        self._let_in = True
        loop, bounds = asyncio.get_running_loop(), self._doors.bounds
        self._timers = [
            loop.call_later(bounds.silent_s, lambda: None if self.asked else transport.abort()),
            loop.call_later(bounds.life_s, transport.abort),
        ]
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self._doors.leave(self._address)
        for timer in self._timers:
            timer.cancel()
        if self._let_in:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand it on."""
        if self._let_in:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Hand it on."""
        return self._inner.eof_received() if self._let_in else None

    def pause_writing(self) -> None:
        """Hand it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand it on."""
        self._inner.resume_writing()


def address_of(transport: Any) -> str:
    """Where a connection comes from."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    return str(peer[0]) if peer else ""
