"""Limits of one account: a token bucket for requests and bytes, connections, and what counts as an account.

An account over the rate is answered later, not refused: an honest burst (all pods of a user bring their Services) gets
through, and a flood waits in its own threads, of which an account has few. A connection has a price, too, and gets no
thread without it. The price of a request grows with its length, as rows of Services cost two milliseconds a KiB.

An account is a uid that the name service knows. A user has 65,536 subordinate uids (newuidmap(1)) that it does not
know, and with them would pass every limit by uid; nobody needs to ask as one of these. A name service may be slow: few
unknown uids are looked up at a time, and who was found once is never looked up again.
"""

from __future__ import annotations

import pwd
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

# Tokens of one account, a second and at once: one a connection, one a request, and more for a long one. Services of 128
# pods that bring 1 KiB each take two seconds, of 1,000 pods less than a minute; a tenth of a processor at most.
REQUESTS_PER_S, REQUESTS_AT_ONCE = 100.0, 300.0
# Writes to etcd of one account: each is kept until etcd compacts its history.
WRITES_PER_S, WRITES_AT_ONCE = 1.0, 20.0
# Bytes for the price of a request.
PRICED_BYTES = 512
# Uids that are looked up at a time.
LOOKUPS_MAX = 8
# Uids that are remembered, and how long one is that the name service did not know.
REMEMBERED_MAX = 4096
UNKNOWN_S = 60.0


def price(size: int) -> float:
    """Return what a request of so many bytes costs."""
    return 1 + size / PRICED_BYTES


class Buckets:
    """A token bucket for each uid; may be used by several threads.

    Args:
        per_s: tokens that come in a second.
        at_once: tokens that a full bucket has.
        clock: in seconds; never goes back.
    """

    def __init__(self, per_s: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._at_once = at_once
        self._clock = clock
        # Uid -> tokens, below zero in debt, and when that was so.
        self._levels: dict[int, tuple[float, float]] = {}
        self._lock = Lock()

    def spend(self, uid: int, price: float = 1.0) -> float:
        """Take tokens, in debt if need be; return the seconds until they are paid for."""
        with self._lock:
            level = self._level(uid) - price
            self._levels[uid] = (level, self._clock())
            return max(0.0, -level / self._per_s)

    def take(self, uid: int, price: float = 1.0) -> float:
        """Take tokens if there are enough and return 0, else the seconds until there are."""
        with self._lock:
            level = self._level(uid)
            if level < price:
                return (price - level) / self._per_s
            self._levels[uid] = (level - price, self._clock())
            return 0.0

    def wait_s(self, uid: int, price: float = 1.0) -> float:
        """Return the seconds until there are so many tokens; take none."""
        with self._lock:
            return max(0.0, (price - self._level(uid)) / self._per_s)

    def _level(self, uid: int) -> float:
        now = self._clock()
        if uid not in self._levels and len(self._levels) >= REMEMBERED_MAX:
            self._levels = {each: entry for each, entry in self._levels.items() if not self._is_full(entry, now)}
        level, since = self._levels.get(uid, (self._at_once, now))
        return min(self._at_once, level + (now - since) * self._per_s)

    def _is_full(self, entry: tuple[float, float], now: float) -> bool:
        level, since = entry
        return level + (now - since) * self._per_s >= self._at_once


class Accounts:
    """Which uids are accounts, as far as that is known; may be used by several threads.

    Args:
        find: the name service; raises KeyError for a uid that it does not know.
        clock: in seconds; never goes back.
    """

    def __init__(
        self, find: Callable[[int], object] = pwd.getpwuid, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._clock = clock
        self._known: OrderedDict[int, None] = OrderedDict()
        # Uid -> when it was not known.
        self._unknown: OrderedDict[int, float] = OrderedDict()
        self._looking = 0
        self._lock = Lock()

    def may_be(self, uid: int) -> bool:
        """Return at once whether a uid is an account or can be looked up now."""
        with self._lock:
            if uid in self._known:
                return True
            if uid in self._unknown and self._clock() - self._unknown[uid] < UNKNOWN_S:
                return False
            return self._looking < LOOKUPS_MAX

    def has(self, uid: int) -> bool:
        """Return whether a uid is an account; the name service may take its time."""
        with self._lock:
            if uid in self._known:
                self._known.move_to_end(uid)
                return True
            if self._looking >= LOOKUPS_MAX:
                return False
            self._looking += 1
        is_known = False
        try:
            self._find(uid)
            is_known = True
        except KeyError:
            pass
        finally:
            with self._lock:
                self._looking -= 1
                self._remember(uid, is_known=is_known)
        return is_known

    def _remember(self, uid: int, *, is_known: bool) -> None:
        self._unknown.pop(uid, None)
        if is_known:
            self._known[uid] = None
        else:
            self._unknown[uid] = self._clock()
        for kept in (self._known, self._unknown):
            while len(kept) > REMEMBERED_MAX:
                kept.popitem(last=False)
