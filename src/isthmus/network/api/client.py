"""Client of this host's daemon, for commands, which show its errors. Root has a separate socket.

So has each account that the daemon knows, in a folder beside the common one: nobody else can fill its queue.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from isthmus.network.api.messages import Request
from isthmus.network.api.protocol import encode_request, parse_reply

SOCKET = Path("/run/isthmus/networkd.sock")
ROOT_SOCKET = Path("/run/isthmus/networkd-root.sock")
QUEUE_FULL_PAUSE_S = 0.02


def ask(request: Request, path: Path | None = None, timeout_s: float = 30) -> dict[str, Any]:
    """Return the values of the daemon's reply.

    Args:
        request: what is asked.
        path: the socket; None for the caller's own.
        timeout_s: for each step of the exchange.

    Raises:
        RequestError: it refused.
        OSError: it cannot be reached, or does not answer in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        connection.settimeout(timeout_s)
        _dial(connection, str(path or own_socket()), time.monotonic() + timeout_s)
        connection.sendall(encode_request(request))
        with connection.makefile("rb") as lines:
            return parse_reply(lines.readline())


def _dial(connection: socket.socket, path: str, until: float) -> None:
    """Connect; a UNIX socket whose queue of callers is full says EAGAIN to who does not block."""
    while True:
        try:
            connection.connect(path)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(QUEUE_FULL_PAUSE_S)


def own_socket() -> Path:
    """Return where the caller asks: at the account's socket if there is one."""
    uid = os.geteuid()
    if not uid:
        return ROOT_SOCKET
    own = account_socket(SOCKET, uid)
    return own if os.access(own, os.W_OK) else SOCKET


def account_socket(common: Path, uid: int) -> Path:
    """Return where an account's socket is, beside the common one."""
    return common.with_name("accounts") / str(uid)
