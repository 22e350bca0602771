"""The daemon's side of `orders`: it has Services followed by a program with other rights than its own.

Those who follow live by the daemon's connection: all of them end with it, whichever side ends. So no daemon that begins
again has any from before it, and one that loses its connection knows that nobody follows any more.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from isthmus.network.logins.orders import MESSAGE_BYTES, SOCKET, Operation, Order, check_answer

UNIT = "isthmus-login-followers.socket"
# More than the program takes to begin, on a host with much else to do.
TIMEOUT_S = 15.0
PAUSE_S = 5.0

_log = logging.getLogger(__name__)


class Followers:
    """The daemon's side; may be used by several threads.

    Args:
        folder: of pods' folders (`place`).
        start: has somebody listen at the socket; may raise OSError.
        path: the socket.
        pause_s: after a failure nobody asks for so long: of a thousand users each would wait in vain.
    """

    def __init__(self, folder: Path, start: Callable[[], None], path: Path = SOCKET, pause_s: float = PAUSE_S) -> None:
        self._folder, self._start, self._path = folder, start, path
        self._pause_s = pause_s
        self._lock = Lock()
        self._connection: socket.socket | None = None
        self._uids: set[int] = set()
        self._failed_s = -pause_s

    def follow(self, uid: int) -> None:
        """Have a user's Services followed in the user's pod. Raises OSError."""
        network = os.open(self._folder / str(uid) / "netns", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with self._lock:
                self._ask(Order(Operation.FOLLOW, uid), network)
                self._uids.add(uid)
        finally:
            os.close(network)

    def unfollow(self, uid: int) -> None:
        """Have them followed no longer. Raises OSError."""
        with self._lock:
            if uid in self._now():
                self._ask(Order(Operation.UNFOLLOW, uid))
                self._uids.discard(uid)

    def followed(self) -> frozenset[int]:
        """Return whose Services are followed; nobody's once the program has ended."""
        with self._lock:
            return self._now()

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            self._drop()

    def _now(self) -> frozenset[int]:
        if self._connection:
            poll = select.poll()
            # It says nothing unasked: what can be read is its end.
            poll.register(self._connection, select.POLLIN)
            if poll.poll(0):
                _log.warning("who follows Services in login pods has ended; it is started again")
                self._drop()
        return frozenset(self._uids)

    def _ask(self, order: Order, *descriptors: int) -> None:
        self._now()
        if time.monotonic() - self._failed_s < self._pause_s:
            raise OSError("who follows Services has just failed")
        try:
            connection = self._connection or self._connect()
            socket.send_fds(connection, [order.encode()], list(descriptors))
            answer = connection.recv(MESSAGE_BYTES)
            if not answer:
                raise OSError("who follows Services has ended")
        except OSError:
            # An answer that comes later would be taken for that of another question.
            self._drop()
            self._failed_s = time.monotonic()
            raise
        check_answer(answer)

    def _connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        made.settimeout(TIMEOUT_S)
        try:
            try:
                made.connect(str(self._path))
            except (FileNotFoundError, ConnectionRefusedError):
                self._start()
                made.connect(str(self._path))
        except BaseException:
            made.close()
            raise
        self._connection = made
        return made

    def _drop(self) -> None:
        if self._connection:
            with suppress(OSError):
                self._connection.close()
        self._connection = None
        self._uids.clear()
