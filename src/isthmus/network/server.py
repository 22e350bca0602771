"""The daemon's socket: a line of JSON in, a line of JSON out, a thread per connection.

Who asks is told by the kernel (SO_PEERCRED, unix(7)), never by the message. A connection that sends nothing, or half
a line, is closed after a while; a user may have a few at a time, so that nobody keeps root's requests waiting.
"""

from __future__ import annotations

import logging
import os
import socket
import socketserver
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

# Longest request, bytes with the newline.
LINE_MAX = 256 * 1024
# A peer must send the next request within this time.
IDLE_S = 60
# Of one user at a time; root's are not counted.
CONNECTIONS_MAX = 16

_log = logging.getLogger(__name__)

# Takes a line and the peer's uid, gives the reply's line; raises nothing.
Answer = Callable[[bytes, int], bytes]


class Server(socketserver.ThreadingUnixStreamServer):
    """Answers requests on a UNIX socket that everybody may connect to."""

    daemon_threads = True
    # A job's nodes all ask at once, and so do the jobs of an array.
    request_queue_size = 128

    def __init__(self, path: Path, answer: Answer) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        super().__init__(str(path), _Handler)
        os.chmod(path, 0o666)  # noqa: S103 -- rights follow from the peer's uid
        self.answer = answer
        self._open: Counter[int] = Counter()
        self._lock = Lock()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a user's connection when he has too many already."""
        uid = peer(request)
        with self._lock:
            if uid and self._open[uid] >= CONNECTIONS_MAX:
                return False
            self._open[uid] += 1
            return True

    def ended(self, uid: int) -> None:
        """Count a connection less."""
        with self._lock:
            self._open[uid] -= 1


class _Handler(socketserver.StreamRequestHandler):
    server: Server
    timeout = IDLE_S

    def handle(self) -> None:
        uid = peer(self.connection)
        try:
            self._serve(uid)
        except OSError as error:
            # The peer went away, or never said anything (TimeoutError).
            _log.debug("connection of uid %d ended: %s", uid, error)
        finally:
            self.server.ended(uid)

    def _serve(self, uid: int) -> None:
        while line := self.rfile.readline(LINE_MAX + 1):
            self.wfile.write(self.server.answer(line, uid))
            if len(line) > LINE_MAX or not line.endswith(b"\n"):
                return


def peer(connection: socket.socket) -> int:
    """Return the uid at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    _, uid, _ = struct.unpack("iII", credentials)
    return int(uid)
