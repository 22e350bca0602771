"""Limits on connections before authentication. All tables are bounded.

Many users share a node's address. So a stranger who holds its places is ended for the next one, who may be honest and
needs them for moments only; and what an address costs by handshakes fills slowly. Those who are known keep theirs.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of the service.

    Attributes:
        connections: at once, in all.
        strangers: of them, who have not said yet who they are.
        strangers_each: of an address.
        hello_s: for how long one may be a stranger.
        burst: connections of an address at once.
        rate: of them per second in the long run.
        addresses: that are remembered.
        lines: of a kubelet at once; more are read slowly.
        lines_rate: of them per second in the long run.
        send_s: how long a reader may take for what it was sent.
    """

    connections: int = 2048
    strangers: int = 256
    strangers_each: int = 16
    hello_s: float = 10.0
    burst: int = 40
    rate: float = 2.0
    addresses: int = 4096
    lines: int = 20
    lines_rate: float = 4.0
    send_s: float = 20.0


class Bucket:
    """What one may do at once, and what comes back by time."""

    def __init__(self, most: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._rate, self._clock = most, rate, clock
        self._left, self._at_s = most, clock()

    def take(self) -> float:
        """Take one; return how many seconds too early that is, 0 when there was one. Only then it is taken."""
        now_s = self._clock()
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


@dataclass(eq=False, slots=True)
class Visitor:
    """A connection.

    Attributes:
        address: where it comes from.
        end: ends it.
    """

    address: str
    end: Callable[[], object]


class Doors:
    """Who is there."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds, self._clock = bounds, clock
        self._strangers: list[Visitor] = []
        self._known: set[Visitor] = set()
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def enter(self, visitor: Visitor) -> bool:
        """Let a stranger in, for which another may have to go; return whether there is room for it."""
        if len(self._known) + self._bounds.strangers > self._bounds.connections:
            return False
        if self._bucket(visitor.address).take():
            return False
        same = [one for one in self._strangers if one.address == visitor.address]
        if len(same) >= self._bounds.strangers_each:
            self._end(same[0])
        if len(self._strangers) >= self._bounds.strangers:
            self._end(self._strangers[0])
        self._strangers.append(visitor)
        return True

    def known(self, visitor: Visitor) -> None:
        """Note that one has said who it is."""
        if visitor in self._strangers:
            self._strangers.remove(visitor)
            self._known.add(visitor)

    def leave(self, visitor: Visitor) -> None:
        """Count one no more."""
        self._known.discard(visitor)
        if visitor in self._strangers:
            self._strangers.remove(visitor)

    def _end(self, visitor: Visitor) -> None:
        self._strangers.remove(visitor)
        visitor.end()

    def _bucket(self, address: str) -> Bucket:
        bucket = self._buckets.pop(address, None) or Bucket(self._bounds.burst, self._bounds.rate, self._clock)
        self._buckets[address] = bucket
        # The one longest unheard of has the fullest bucket.
        while len(self._buckets) > self._bounds.addresses:
            self._buckets.popitem(last=False)
        return bucket
