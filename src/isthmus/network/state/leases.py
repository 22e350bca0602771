"""Releases the leases of users who have left the node.

A lease is in use while a process of its user runs on the node; /proc shows which do. It is dropped when that has not
been so for a while, counted from the daemon's start at the earliest.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


def users_here(proc: Path = Path("/proc")) -> frozenset[int]:
    """Return the uids of all processes of this host."""
    uids = set()
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            try:
                uids.add(entry.stat().st_uid)
            except FileNotFoundError:  # ended meanwhile
                continue
    return frozenset(uids)


class Idle:
    """Remembers since when each user with a lease has no process.

    Args:
        limit_s: how long a lease may be without use.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since_s: dict[int, float] = {}

    def judge(self, leased: Collection[int], here: Collection[int], now_s: float) -> tuple[int, ...]:
        """Return the users whose leases are due to be dropped.

        Args:
            leased: users with a lease on this node.
            here: users with a process.
            now_s: by a clock that never goes back.
        """
        absent = [uid for uid in leased if uid not in here]
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in absent}
        return tuple(uid for uid, since_s in sorted(self._since_s.items()) if now_s - since_s >= self._limit_s)
