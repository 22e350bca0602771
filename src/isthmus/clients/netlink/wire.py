"""A socket of rtnetlink(7) for one network namespace: requests in batches, dumps, and errors with names.

The socket belongs to the namespace of the thread that opens it and stays there whichever thread uses it later; that is
how one process configures many namespaces without entering them. It is not for two threads at once.

pyroute2 knows what messages look like, but its IPRoute is left aside: it runs an event loop for each request, which
costs 180 us and fails in a thread that has a loop already. A batch costs 4 us a request, and a process that is killed
cannot be stopped inside one: the kernel works a whole batch off within the system call that hands it over.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

_SOL_NETLINK, _CAP_ACK, _EXT_ACK, _STRICT = 270, 10, 11, 12
_REQUEST, _ACK, _DUMP, _INTERRUPTED, _ACK_TLVS = 0x1, 0x4, 0x300, 0x10, 0x200
_ERROR, _DONE = 2, 3
_REASON = 1
# Above are flags.
_KIND = 0x3FFF
HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
# As many answers as fit the receive buffer below with room to spare.
_BATCH = 256
_BUFFER_BYTES = 4 * 2**20
# The kernel fills at most 32 KiB of a dump at once.
_RECEIVE_BYTES = 2**16
_LAST_SEQUENCE = 2**31
_TIMEOUT_S = 30
_DUMP_TRIES = 10
T = TypeVar("T")


class NetlinkError(Exception):
    """The kernel refused a request.

    Attributes:
        what: the request, in words.
        errno: the kernel's error number.
    """

    def __init__(self, what: str, number: int, reason: str = "") -> None:
        self.what = what
        self.errno = number
        said = f" ({reason})" if reason else ""
        super().__init__(f"{what}: {os.strerror(number)}{said}")


class NotThereError(NetlinkError):
    """What was asked for does not exist."""


class AlreadyThereError(NetlinkError):
    """What should be made exists."""


class NotPermittedError(NetlinkError):
    """The process lacks CAP_NET_ADMIN, or CAP_SYS_ADMIN for namespaces."""


class NotSupportedError(NetlinkError):
    """The kernel has no such thing; often a module is missing."""


_NAMED: dict[int, type[NetlinkError]] = {
    errno.ENOENT: NotThereError,
    errno.ENODEV: NotThereError,
    errno.ESRCH: NotThereError,
    errno.EADDRNOTAVAIL: NotThereError,
    errno.EEXIST: AlreadyThereError,
    errno.EPERM: NotPermittedError,
    errno.EACCES: NotPermittedError,
    errno.EOPNOTSUPP: NotSupportedError,
    errno.EAFNOSUPPORT: NotSupportedError,
    errno.EPROTONOSUPPORT: NotSupportedError,
}

GONE = frozenset({errno.ENOENT, errno.ENODEV, errno.ESRCH, errno.EADDRNOTAVAIL})
THERE = frozenset({errno.EEXIST})


def failure(what: str, number: int, reason: str = "") -> NetlinkError:
    """Return the error that has the number's name."""
    return _NAMED.get(number, NetlinkError)(what, number, reason)


@dataclass(frozen=True, slots=True)
class Request:
    """One message to the kernel.

    Attributes:
        type: RTM_...
        body: all that follows the netlink header.
        what: the request in words, for errors.
        flags: besides NLM_F_REQUEST and NLM_F_ACK.
        fine: error numbers that count as success.
    """

    type: int
    body: bytes
    what: str
    flags: int = 0
    fine: frozenset[int] = frozenset()


class Wire:
    """A netlink socket in the namespace of the thread that makes it.

    Args:
        protocol: rtnetlink, or another of linux/netlink.h.
    """

    def __init__(self, protocol: int = 0) -> None:
        self._sequence = 0
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        except OSError as error:
            raise failure("open a netlink socket", error.errno or 0) from error
        for option in (_CAP_ACK, _EXT_ACK, _STRICT):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        # SO_RCVBUFFORCE (33) is not bound by net.core.rmem_max.
        self._socket.setsockopt(socket.SOL_SOCKET, 33, _BUFFER_BYTES)
        self._socket.settimeout(_TIMEOUT_S)
        self._socket.bind((0, 0))

    def close(self) -> None:
        """Close the socket; what it made stays."""
        self._socket.close()

    def send(self, *requests: Request) -> None:
        """Have requests carried out, in their order.

        Raises:
            NetlinkError: for the first that failed; requests of its batch were all tried, of later batches none.
        """
        waiting = iter(requests)
        while batch := tuple(islice(waiting, _BATCH)):
            self._send_batch(batch)

    def _send_batch(self, batch: Sequence[Request]) -> None:
        first = self._next(len(batch))
        self._socket.send(b"".join(_packed(request, first + place) for place, request in enumerate(batch)))
        failed: NetlinkError | None = None
        missing = len(batch)
        while missing:
            for number, sequence, reason in _answers(self._receive(batch[-1])):
                if not 0 <= sequence - first < len(batch):
                    continue
                missing -= 1
                request = batch[sequence - first]
                if number and number not in request.fine and failed is None:
                    failed = failure(request.what, number, reason)
        if failed:
            raise failed

    def read(self, request: Request, decode: Callable[[bytes], T]) -> list[T]:
        """Return all objects a request asks for, each decoded from what follows its netlink header.

        Raises:
            NetlinkError: the kernel refused, or the list changed under each of several tries.
        """
        for _ in range(_DUMP_TRIES):
            found = self._read_once(request, decode)
            if found is not None:
                return found
        raise failure(request.what, errno.EINTR)

    def _read_once(self, request: Request, decode: Callable[[bytes], T]) -> list[T] | None:
        number = self._next(1)
        self._socket.send(_packed(request, number))
        found: list[T] = []
        whole = True
        while True:
            data = self._receive(request)
            for start, end, kind, flags, sequence in _messages(data):
                if sequence != number:
                    continue
                whole = whole and not flags & _INTERRUPTED
                if kind in (_ERROR, _DONE):
                    code = -struct.unpack_from("=i", data, start + HEADER.size)[0]
                    if code and code not in request.fine:
                        raise failure(request.what, code)
                    return found if whole else None
                found.append(decode(data[start + HEADER.size : end]))

    def _next(self, count: int) -> int:
        """Return the first of so many sequence numbers."""
        first = self._sequence + 1 if self._sequence < _LAST_SEQUENCE else 1
        self._sequence = first + count - 1
        return first

    def _receive(self, request: Request) -> bytes:
        try:
            return self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise failure(request.what, error.errno or errno.ETIMEDOUT) from error


def listing(kind: int, body: bytes, what: str) -> Request:
    """Return the request for a dump."""
    return Request(kind, body, what, _DUMP)


def _packed(request: Request, sequence: int) -> bytes:
    flags = request.flags | _REQUEST | (0 if request.flags & _DUMP == _DUMP else _ACK)
    return HEADER.pack(HEADER.size + len(request.body), request.type, flags, sequence, 0) + request.body


def attributes(data: bytes) -> dict[int, bytes]:
    """Return the values of attributes by their types; nested ones are not looked into."""
    found = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        found[kind & _KIND] = data[at + _ATTRIBUTE.size : at + length]
        at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return found


def _messages(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield where each message starts and ends, its type, flags and sequence number."""
    start = 0
    while start + HEADER.size <= len(data):
        length, kind, flags, sequence, _ = HEADER.unpack_from(data, start)
        yield start, start + length, kind, flags, sequence
        start += (length + 3) & ~3


def _answers(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield error number (0: done), sequence number and the kernel's words of each acknowledgement."""
    for start, end, kind, flags, sequence in _messages(data):
        if kind == _ERROR:
            (number,) = struct.unpack_from("=i", data, start + HEADER.size)
            # The refused request's header comes first (_CAP_ACK), then what the kernel has to say.
            attrs = attributes(data[start + 2 * HEADER.size + 4 : end]) if flags & _ACK_TLVS else {}
            yield -number, sequence, attrs.get(_REASON, b"").rstrip(b"\0").decode(errors="replace")
