"""Lines for the system's journal from programs that must stay small: without `logging`, which brings threads' locks.

A process that is forked has its copies of pages that those locks lie in, as all of them are made again in each.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

# syslog(3): what goes wrong and goes on, of a daemon.
_WARNING, _DAEMON = 4, 24
SYSLOG = "/dev/log"
Say = Callable[[str], None]


def say(text: str) -> None:
    """Write a warning to the standard error, as systemd reads it (sd-daemon(3))."""
    with suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"<{_WARNING}>{_line(text)}\n".encode())


def syslog(name: str, path: str = SYSLOG) -> Say:
    """Return what writes a program's warnings by a connection of its own; where nobody listens they are lost."""

    def write(text: str) -> None:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            # A journal that does not read must not hold anybody up.
            out.setblocking(False)
            out.connect(path)
            out.send(f"<{_DAEMON | _WARNING}>{name}: {_line(text)}".encode())

    return write


def _line(text: str) -> str:
    return text.replace("\n", " ")
