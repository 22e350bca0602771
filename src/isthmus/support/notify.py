"""Notifications to systemd (sd_notify(3)); a no-op outside of systemd."""

from __future__ import annotations

import os
import socket


def notify(*words: str) -> None:
    """Send words such as `READY=1`, `WATCHDOG=1` or `STATUS=...`.

    Raises:
        OSError: systemd's socket is named but cannot be reached.
    """
    name = os.environ.get("NOTIFY_SOCKET")
    if not name:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        # An abstract socket begins with a zero byte, which an environment variable cannot hold (unix(7)).
        channel.connect("\0" + name[1:] if name.startswith("@") else name)
        channel.sendall("\n".join(words).encode())


def watchdog_interval_s() -> float | None:
    """Return how often systemd wants to hear `WATCHDOG=1`, half of its limit; None when it does not watch."""
    limit_us = os.environ.get("WATCHDOG_USEC", "")
    return int(limit_us) / 2e6 if limit_us.isdecimal() else None
