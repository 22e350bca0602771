"""Clients of an etcd that write, read and watch meanwhile, and how long they had to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from isthmus.clients.etcd.store import Access, Etcd, EtcdError, UnavailableError

# From one call to the next.
PAUSE_S = 0.005


class Load:
    """A writer, a reader and a watch, each in a thread of its own.

    Attributes:
        acknowledged: numbers whose key is written; the key of each is `prefix` and the number, its value the number.
        wrong: what the reader got instead of an acknowledged value.
        seen: keys that the watch reported.
        beats: kind of client -> when each call ended well, seconds of the monotonic clock.
    """

    def __init__(self, access: Access, prefix: str) -> None:
        self.prefix = prefix
        self.acknowledged: list[int] = []
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        self.beats: dict[str, list[float]] = {"write": [], "read": []}
        self._over = threading.Event()
        self._etcd = Etcd(access)
        self._changes = self._etcd.watch(prefix, self._etcd.put(f"{prefix}begin", ""))
        loops = (lambda: self._repeat("write", self._write), lambda: self._repeat("read", self._read))
        self._threads = [threading.Thread(target=loop, daemon=True) for loop in loops]
        threading.Thread(target=self._watch, daemon=True).start()
        for thread in self._threads:
            thread.start()

    def key(self, number: int) -> str:
        """Return the key of a number."""
        return f"{self.prefix}{number:06}"

    def longest_gap_s(self, kind: str, since: float) -> float:
        """Return the longest time that a kind of client went without an answer since a moment, until now."""
        beats = [since, *(beat for beat in self.beats[kind] if beat >= since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(beats))

    def stop(self) -> None:
        """End the writer and the reader; the watch ends with the process."""
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def close(self) -> None:
        """End everything."""
        self.stop()
        self._etcd.close()

    def _repeat(self, kind: str, call: Callable[[], None]) -> None:
        while not self._over.wait(PAUSE_S):
            try:
                call()
            except UnavailableError:
                # The gap shows it.
                continue
            self.beats[kind].append(time.monotonic())

    def _write(self) -> None:
        number = len(self.acknowledged)
        self._etcd.put(self.key(number), str(number))
        self.acknowledged.append(number)

    def _read(self) -> None:
        if self.acknowledged:
            number = self.acknowledged[-1]
            found = self._etcd.get(self.key(number))
            if found is None or found.value != str(number):
                self.wrong.append(f"{self.key(number)}: {found}")

    def _watch(self) -> None:
        # Closing the client ends it.
        with suppress(EtcdError):
            for changes in self._changes:
                self.seen.update(event.key for event in changes.events)
