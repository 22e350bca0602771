"""The daemon's sockets: a line of JSON in, a line of JSON out, a thread per connection.

Root has a socket of its own, which nobody else can connect to: prolog, steps and epilog never stand behind users, in
no queue of callers and in no limit. The user on the users' socket is known from the kernel (SO_PEERCRED, unix(7)),
never from the message. An account may have a few connections there at a time, and all accounts together no more than
leave threads and descriptors for root; requests beyond an account's rate are answered later (`limits`). A connection
that sends nothing, or half a line, is closed after a while.

A user's request is short, but for Services: of a longer one only the beginning is read before it is known whether the
user may ask it.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import socketserver
import struct
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from isthmus.network.api import limits
from isthmus.network.api.account_sockets import AccountSockets
from isthmus.network.api.client import account_socket
from isthmus.network.api.messages import ErrorCode
from isthmus.network.api.protocol import refuse

# Longest request, bytes with the newline.
LINE_MAX = 256 * 1024
# The same of a user's, but for one that `Admit` lets through.
SHORT_MAX = 4 * 1024
# A peer must send the next request within this time.
IDLE_S = 60
# Of one account at a time, and of all accounts; the unit's TasksMax leaves more threads than that.
CONNECTIONS_MAX = 16
ACCOUNTS_CONNECTIONS_MAX = 384
# Connections that are refused are closed a little later, so that a client that retries at once has to wait.
REFUSED_HELD_MAX = 256
REFUSED_S = 0.2
# Connections taken from the common socket, a second and at once.
COMMON_PER_S, COMMON_AT_ONCE = 500.0, 300.0
# After an accept or a thread that failed for want of something, so that others can go on.
BREATH_S = 0.1
_WANTING = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_log = logging.getLogger(__name__)

# Takes a line and the peer's uid, gives the reply's line; raises nothing.
Answer = Callable[[bytes, int], bytes]
# Takes the beginning of a long line and the peer's uid, gives a reply's line that refuses it, or None.
Admit = Callable[[bytes, int], bytes | None]


class Server(socketserver.ThreadingUnixStreamServer):
    """Answers requests on a UNIX socket of its own user, root."""

    daemon_threads = True
    # A job's nodes all ask at once, and so do the jobs of an array.
    request_queue_size = 128
    mode = 0o600

    def __init__(self, path: Path, answer: Answer, breath_s: float = BREATH_S) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        # Between bind and chmod nobody else may connect.
        before = os.umask(0o177)
        try:
            super().__init__(str(path), _Handler)
        finally:
            os.umask(before)
        os.chmod(path, self.mode)
        self.answer, self._breath_s = answer, breath_s

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; one that cannot be had for want of descriptors is waited for, not asked for again."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _WANTING:
                _log.warning("a connection waits: %s", error)
                time.sleep(self._breath_s)
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse peers that the file's mode should not have let through."""
        return peer(request) == os.geteuid()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say why a connection got no thread; socketserver closes it."""
        _log.warning("a connection was closed", exc_info=True)
        time.sleep(self._breath_s)

    def serve(self, handler: _Handler, uid: int) -> None:
        """Answer what comes, until the peer leaves or sends what is no line."""
        while line := handler.rfile.readline(LINE_MAX + 1):
            handler.wfile.write(self.answer(line, uid))
            if len(line) > LINE_MAX or not line.endswith(b"\n"):
                return


class UsersServer(Server):
    """The same for everybody, with the limits of accounts.

    Args:
        path: of the socket.
        answer: does requests.
        admit: judges a long request by its beginning.
        accounts: who is one.
        breath_s: pause after a connection that could not be served for want of a thread or a descriptor.
    """

    mode = 0o666

    def __init__(
        self,
        path: Path,
        answer: Answer,
        admit: Admit,
        accounts: limits.Accounts | None = None,
        breath_s: float = BREATH_S,
    ) -> None:
        super().__init__(path, answer, breath_s)
        self._admit = admit
        self._accounts = accounts or limits.Accounts()
        self._buckets = limits.Buckets(limits.REQUESTS_PER_S, limits.REQUESTS_AT_ONCE)
        self._common = limits.Buckets(COMMON_PER_S, COMMON_AT_ONCE)
        self.own = AccountSockets(account_socket(path, 0).parent, lambda uid: self._buckets.wait_s(uid), self.take)
        self._open: Counter[int] = Counter()
        # Counted once each, whatever becomes of them.
        self._counted: dict[socket.socket, int] = {}
        self._rejected: set[socket.socket] = set()
        self._closing: deque[tuple[float, socket.socket]] = deque()
        self._lock = Lock()

    def server_close(self) -> None:
        """Close the accounts' sockets, too."""
        super().server_close()
        self.own.close()

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection on the common socket, at its rate."""
        time.sleep(self._common.spend(0))
        return super().get_request()

    def take(self, request: socket.socket) -> None:
        """Serve a connection that an account's own socket accepted, as socketserver serves those of the common one."""
        try:
            if self.verify_request(request, None):
                self.process_request(request, None)
                return
        except Exception:
            self.handle_error(request, None)
        self.shutdown_request(request)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a connection beyond what an account may have, which costs as well; root is not counted."""
        uid = peer(request)
        with self._lock:
            is_within = self._open[uid] < CONNECTIONS_MAX and len(self._counted) < ACCOUNTS_CONNECTIONS_MAX
            if uid and not (self._accounts.may_be(uid) and not self._buckets.take(uid) and is_within):
                self._rejected.add(request)
                return False
            if uid:
                self._open[uid] += 1
                self._counted[request] = uid
            return True

    def shutdown_request(self, request: Any) -> None:
        """End a connection: one that had a thread, one that got none, and, a little later, one that was refused."""
        with self._lock:
            uid = self._counted.pop(request, 0)
            if uid:
                self._open[uid] -= 1
            if not self._open[uid]:
                del self._open[uid]
            is_rejected = request in self._rejected
            self._rejected.discard(request)
        if is_rejected and len(self._closing) < REFUSED_HELD_MAX:
            self._closing.append((time.monotonic() + REFUSED_S, request))
        else:
            super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close what was refused a while ago; the loop calls this again and again."""
        while self._closing and self._closing[0][0] <= time.monotonic():
            super().shutdown_request(self._closing.popleft()[1])

    def serve(self, handler: _Handler, uid: int) -> None:
        """Answer a user's requests, at the account's rate."""
        if uid == 0:
            super().serve(handler, uid)
            return
        if not self._accounts.has(uid):
            why = f"uid {uid} is no account of this host; ask as yourself, not in a user namespace"
            handler.wfile.write(refuse(ErrorCode.FORBIDDEN, why))
            return
        self.own.open(uid)
        while line := self._line(handler, uid):
            time.sleep(self._buckets.spend(uid, limits.price(len(line))))
            handler.wfile.write(self.answer(line, uid))
            if len(line) > LINE_MAX or not line.endswith(b"\n"):
                return

    def _line(self, handler: _Handler, uid: int) -> bytes:
        """Read a request; nothing where it is refused by its beginning."""
        line = handler.rfile.readline(SHORT_MAX + 1)
        if len(line) <= SHORT_MAX:
            return line
        time.sleep(self._buckets.spend(uid))
        refusal = self._admit(line, uid)
        if refusal is None:
            return line if line.endswith(b"\n") else line + handler.rfile.readline(LINE_MAX + 1 - len(line))
        handler.wfile.write(refusal)
        # A peer that is still sending must be able to read it: a connection closed on unread bytes is broken.
        handler.rfile.readline(LINE_MAX)
        return b""


class _Handler(socketserver.StreamRequestHandler):
    server: Server
    timeout = IDLE_S

    def handle(self) -> None:
        uid = peer(self.connection)
        try:
            self.server.serve(self, uid)
        except OSError as error:
            # The peer went away, or never said anything (TimeoutError).
            _log.debug("connection of uid %d ended: %s", uid, error)


def peer(connection: socket.socket) -> int:
    """Return the uid at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    _, uid, _ = struct.unpack("iII", credentials)
    return int(uid)
