"""Lists and watches of an API server by plain sockets: for programs of which a thousand run on one host.

An event loop and aiohttp cost such a program some 6 MB of its own (`kube.api` has all requests, with both). Here one
connection serves one collection: it is listed, then watched, and the next watch goes by the same connection.
"""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

from isthmus.clients.kube.errors import UnreachableError, of_status

Object = dict[str, Any]
# As those of `kube.api`.
TIMEOUT_S = 30.0
WATCH_S = 240
# What one TLS record holds.
_PIECE_BYTES = 16384
# Of an answer's head; and of one line of a watch, as etcd takes objects of up to 1.5 MiB.
HEAD_BYTES, LINE_BYTES = 1 << 16, 4 << 20


class Answer:
    """An answer of HTTP/1.1 (RFC 9112) to a GET that comes in pieces.

    Attributes:
        status: of HTTP; 0 as long as the head is not whole.
        is_whole: nothing more belongs to it.
        keeps: the connection serves more requests.
    """

    def __init__(self) -> None:
        self.status = 0
        self.is_whole = False
        self.keeps = False
        self._held = bytearray()
        self._left: int | None = None
        self._is_chunked = self._is_last = False

    def feed(self, piece: bytes) -> bytes:
        """Take a piece, an empty one where the server closed; return what it adds to the content.

        Raises:
            ValueError: this is no such answer, or it ends too early.
        """
        self._held += piece
        if not self.status and not self._head():
            if not piece:
                raise ValueError("cut off")
            return b""
        content = self._chunks() if self._is_chunked else self._plain()
        if not piece and not self.is_whole:
            if self._is_chunked or self._left is not None:
                raise ValueError("cut off")
            self.is_whole = True
        return content

    def _head(self) -> bool:
        end = self._held.find(b"\r\n\r\n")
        if end < 0:
            if len(self._held) > HEAD_BYTES:
                raise ValueError("a head without an end")
            return False
        first, *lines = self._held[:end].decode("latin-1").split("\r\n")
        del self._held[: end + 4]
        protocol, status, *_ = (*first.split(" ", 2), "")
        if not protocol.startswith("HTTP/1.") or len(status) != 3 or not status.isdecimal():
            raise ValueError("no HTTP")
        pairs = (line.partition(":") for line in lines)
        fields = {name.lower(): value.strip().lower() for name, _, value in pairs}
        self._is_chunked = fields.get("transfer-encoding") == "chunked"
        if not self._is_chunked and "content-length" in fields:
            self._left = _number(fields["content-length"], 10)
        self.keeps = fields.get("connection") != "close" and (self._is_chunked or self._left is not None)
        self.status = int(status)
        return True

    def _plain(self) -> bytes:
        content = bytes(self._held if self._left is None else self._held[: self._left])
        del self._held[: len(content)]
        if self._left is not None:
            self._left -= len(content)
            self.is_whole = self._left == 0
        return content

    def _chunks(self) -> bytes:
        """Return the content of what is there of chunks; each is followed by an end of line."""
        content = bytearray()
        while not self.is_whole:
            if self._left:
                part = self._held[: self._left]
                content += part
                del self._held[: len(part)]
                self._left -= len(part)
                if self._left:
                    break
            line = self._line()
            if line is None:
                break
            if self._is_last:
                # Trailers, of which the API server sends none, end with an empty line.
                self.is_whole = not line
            elif self._left == 0:
                if line:
                    raise ValueError("a chunk of another length")
                self._left = None
            else:
                self._left = _number(line.partition(b";")[0].strip().decode("latin-1"), 16)
                self._is_last = self._left == 0
        return bytes(content)

    def _line(self) -> bytes | None:
        end = self._held.find(b"\r\n")
        if end < 0:
            if len(self._held) > HEAD_BYTES:
                raise ValueError("a line without an end")
            return None
        line = bytes(self._held[:end])
        del self._held[: end + 2]
        return line


class Connection:
    """A connection to an API server; asks for one thing at a time.

    Args:
        server: its URL.
        tls: shows who the user is.
        timeout_s: of each step of what is waited for.

    Raises:
        UnreachableError: there is none; this holds for all methods.
    """

    def __init__(self, server: str, tls: ssl.SSLContext, timeout_s: float = TIMEOUT_S) -> None:
        place = urlsplit(server)
        self._server, self._host, self._timeout_s = server, place.netloc, timeout_s
        self._path, self._answer, self._line = "", Answer(), bytearray()
        host = place.hostname or ""
        try:
            plain = socket.create_connection((host, place.port or 443), timeout_s)
            try:
                self._socket = tls.wrap_socket(plain, server_hostname=host)
            except BaseException:
                plain.close()
                raise
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{server} did not answer: {_reason(error)}") from error

    def fileno(self) -> int:
        """Return the descriptor, readable once `events` may have some."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def get(self, path: str, query: dict[str, str]) -> Object:
        """Return a list, whole.

        Raises:
            KubeError: the server refused.
        """
        self._ask(path, query)
        content = bytearray()
        while not self._answer.is_whole:
            content += self._read() or b""
        if self._answer.status >= 300:
            raise self._refusal(bytes(content))
        return self._parsed(bytes(content))

    def watch(self, path: str, version: str) -> None:
        """Ask for what changes after a version; `events` has it."""
        asked = {"watch": "true", "timeoutSeconds": str(WATCH_S), "allowWatchBookmarks": "true"}
        self._ask(path, asked | {"resourceVersion": version})

    @property
    def is_over(self) -> bool:
        """Whether the watch has ended; the next can follow if the server keeps the connection."""
        return self._answer.is_whole

    @property
    def keeps(self) -> bool:
        """Whether the connection serves more requests."""
        return self._answer.keeps

    def events(self) -> list[tuple[str, Object]]:
        """Return what has come of a watch, without waiting: ADDED, MODIFIED, DELETED or BOOKMARK, and the object.

        Raises:
            GoneError: the version is too old.
            KubeError: the server refused.
        """
        found: list[tuple[str, Object]] = []
        self._socket.settimeout(0)
        try:
            while not self._answer.is_whole:
                content = self._read()
                if content is None:
                    break
                found.extend(map(self._event, self._lines(content)))
        finally:
            with suppress(OSError):
                self._socket.settimeout(self._timeout_s)
        if self._answer.is_whole and self._answer.status >= 300:
            raise self._refusal(bytes(self._line))
        return found

    def _lines(self, content: bytes) -> list[bytes]:
        self._line += content
        if len(self._line) > LINE_BYTES:
            raise UnreachableError(f"{self._server}: an event of more than {LINE_BYTES} bytes")
        if self._answer.status >= 300:
            return []
        *whole, left = self._line.split(b"\n")
        self._line = bytearray(left)
        return [bytes(line) for line in whole if line]

    def _event(self, line: bytes) -> tuple[str, Object]:
        event = self._parsed(line)
        kind, found = event.get("type"), event.get("object")
        if not isinstance(kind, str) or not isinstance(found, dict):
            raise UnreachableError(f"{self._server}: an event of {self._path} that is none")
        if kind == "ERROR":
            raise of_status(found.get("code") or 500, f"GET {self._path}: {found.get('message') or found}")
        return kind, found

    def _ask(self, path: str, query: dict[str, str]) -> None:
        self._path, self._answer, self._line = path, Answer(), bytearray()
        base = urlsplit(self._server).path
        head = f"GET {base}{path}?{urlencode(query)} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\n\r\n"
        try:
            self._socket.sendall(head.encode("ascii"))
        except OSError as error:
            raise UnreachableError(f"{self._server} did not answer: {_reason(error)}") from error

    def _read(self) -> bytes | None:
        """Return more of the content; None where there is nothing yet, of a socket that does not wait."""
        try:
            return self._answer.feed(self._socket.recv(_PIECE_BYTES))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return None
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{self._server} broke off: {_reason(error)}") from error

    def _refusal(self, content: bytes) -> Exception:
        words = content.decode(errors="replace").strip()
        with suppress(ValueError, AttributeError):
            words = json.loads(content).get("message") or words
        return of_status(self._answer.status, f"GET {self._path}: {words or self._answer.status}")

    def _parsed(self, content: bytes) -> Object:
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise UnreachableError(f"{self._server}: what it says of {self._path} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise UnreachableError(f"{self._server}: what it says of {self._path} is no object")
        return found


def _number(text: str, base: int) -> int:
    if not text or not all(each in "0123456789abcdefABCDEF" for each in text):
        raise ValueError("a length that is none")
    return int(text, base)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error}"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
