"""Asks this host's daemon; for commands, which show its words when it refuses."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from isthmus.network.messages import Request
from isthmus.network.protocol import encode_request, parse_reply

SOCKET = Path("/run/isthmus/networkd.sock")


def ask(request: Request, path: Path = SOCKET, timeout_s: float = 30) -> dict[str, Any]:
    """Return the values of the daemon's reply.

    Raises:
        RequestError: it refused.
        OSError: it cannot be reached, or does not answer in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(encode_request(request))
        with connection.makefile("rb") as lines:
            return parse_reply(lines.readline())
