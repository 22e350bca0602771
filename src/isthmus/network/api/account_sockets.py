"""A listening socket per account of this host, so that accounts do not share a backlog.

The queue of a UNIX socket is one for all who connect: one account alone can fill it, and each of their connections
costs the daemon an accept. So each account gets a socket of its own in a folder beside the common one; only it, and
root, can connect there. An account over its rate is not accepted until it has paid: its callers sleep in its own queue,
in the kernel, and take no time of anybody's.

All of them are one thread's, by epoll(7): a socket is looked at again when its last connection was dealt with
(EPOLLONESHOT) and the account's next one is paid for.
"""

from __future__ import annotations

import heapq
import logging
import os
import select
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

# As many as descriptors allow beside connections (LimitNOFILE of the unit); the one unused for longest makes room.
SOCKETS_MAX = 1024
# All pods of a user on a node may ask at once.
QUEUE = 128
# After an accept that failed for want of something.
BREATH_S = 0.1
_READY = select.EPOLLIN | select.EPOLLONESHOT

_log = logging.getLogger(__name__)


class AccountSockets:
    """The sockets; `open` may be called by any thread.

    Args:
        folder: where they are, named by uid.
        wait_s: how long until an account has paid for its next connection.
        take: gets each connection; raises nothing.
        at_most: how many there are.
    """

    def __init__(
        self,
        folder: Path,
        wait_s: Callable[[int], float],
        take: Callable[[socket.socket], None],
        at_most: int = SOCKETS_MAX,
    ) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._take = take
        self._at_most = at_most
        # Uid -> socket, the last used at the end.
        self._sockets: OrderedDict[int, socket.socket] = OrderedDict()
        self._uids: dict[int, int] = {}
        # When to look at an account's socket again.
        self._paused: list[tuple[float, int]] = []
        self._is_failing = False
        self._is_closed = False
        self._lock = Lock()
        self._epoll = select.epoll()
        folder.mkdir(mode=0o755, exist_ok=True)
        for left in folder.iterdir():
            left.unlink(missing_ok=True)

    def open(self, uid: int) -> None:
        """Open an account's socket if there is none."""
        with self._lock:
            if uid in self._sockets:
                return
            try:
                listener = _listen(self._folder / str(uid), uid)
            except OSError as error:
                # Each request of an account without one comes here.
                _log.log(logging.DEBUG if self._is_failing else logging.WARNING, "uid %d has no socket: %s", uid, error)
                self._is_failing = True
                return
            while len(self._sockets) >= self._at_most:
                self._drop(next(iter(self._sockets)))
            self._is_failing = False
            self._sockets[uid] = listener
            self._uids[listener.fileno()] = uid
            self._epoll.register(listener, _READY)

    def serve_forever(self) -> None:
        """Accept connections until all are closed."""
        while not self._is_closed:
            self.serve_once(1.0)

    def serve_once(self, timeout_s: float) -> None:
        """Accept one connection of each account that has one and has paid, or wait for one."""
        for descriptor, _ in self._epoll.poll(min(timeout_s, self._resume())):
            with self._lock:
                uid = self._uids.get(descriptor)
                listener = self._sockets[uid] if uid is not None else None
            if uid is not None and listener is not None:
                pause_s = self._accept(listener)
                self._again(uid, max(pause_s, self._wait_s(uid)))

    def close(self) -> None:
        """Close all; the thread that serves them ends within a second."""
        self._is_closed = True
        with self._lock:
            for uid in list(self._sockets):
                self._drop(uid)

    def _accept(self, listener: socket.socket) -> float:
        """Pass a connection on; return how long to wait before the next."""
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return 0.0
        except OSError as error:
            _log.warning("a connection waits: %s", error)
            return BREATH_S
        self._take(connection)
        return 0.0

    def _again(self, uid: int, pause_s: float) -> None:
        with self._lock:
            if uid not in self._sockets:
                return
            self._sockets.move_to_end(uid)
            if pause_s > 0:
                heapq.heappush(self._paused, (time.monotonic() + pause_s, uid))
            else:
                self._epoll.modify(self._sockets[uid], _READY)

    def _resume(self) -> float:
        """Look at sockets again whose time has come; return the seconds until the next."""
        with self._lock:
            now = time.monotonic()
            while self._paused and self._paused[0][0] <= now:
                _, uid = heapq.heappop(self._paused)
                if uid in self._sockets:
                    self._epoll.modify(self._sockets[uid], _READY)
            return self._paused[0][0] - now if self._paused else float("inf")

    def _drop(self, uid: int) -> None:
        listener = self._sockets.pop(uid)
        del self._uids[listener.fileno()]
        (self._folder / str(uid)).unlink(missing_ok=True)
        listener.close()


def _listen(path: Path, uid: int) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        # Nobody connects before it listens.
        os.chmod(path, 0o600)
        os.chown(path, uid, -1)
        listener.listen(QUEUE)
    except OSError:
        path.unlink(missing_ok=True)
        listener.close()
        raise
    return listener
