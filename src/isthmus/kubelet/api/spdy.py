"""The subset of SPDY/3.1 for port-forward, which kubectl tunnels through a WebSocket; a codec without I/O.

Numbers are big-endian. A control frame is u16 version (top bit set) | u16 kind | u8 flags | u24 length; a data frame
u32 stream | u8 flags | u24 length. Headers are a u32 count of u32-counted names and values, packed by one zlib
stream for the whole connection that starts with a known dictionary (SPDY protocol, draft 3.1, sections 2.2, 2.6).
Flow-control windows are not implemented, as in kubectl's own library.

By hand, as Python's libraries of SPDY ended with HTTP/2 and had no SPDY/3.1; kubectl still needs it for this one verb.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

_VERSION = 3
_CONTROL = 0x8000
_FIN = 0x01
_HEAD = 8
# More than any header block of port-forward; data comes in frames of a few ten KiB.
MAX_FRAME_BYTES = 1 << 20

# The dictionary: names with their length in front, then text.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200~OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(word: str) -> bytes:
    return struct.pack(">I", len(word)) + word.encode()


DICTIONARY = b"".join(_counted(word.replace("~", " ")) for word in _WORDS.split()) + _TEXT.encode()


class Kind(IntEnum):
    """Control frames that are handled."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7


class SpdyError(Exception):
    """The other side does not speak SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A new stream, with its headers in lower case."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bytes:
    """Data of a stream; `last` marks its end."""

    stream: int
    body: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream was reset."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Must be echoed."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Leaving:
    """No new streams follow."""


Event = Opened | Bytes | Reset | Ping | Leaving


class Spdy:
    """One connection, seen from the server."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Feed received bytes; yield complete frames.

        Raises:
            SpdyError: invalid data.
        """
        self._waiting += chunk
        while len(self._waiting) >= _HEAD:
            first, flags_length = struct.unpack_from(">II", self._waiting)
            length = flags_length & 0xFFFFFF
            if length > MAX_FRAME_BYTES:
                raise SpdyError(f"a frame of {length} bytes")
            if len(self._waiting) < _HEAD + length:
                return
            frame = bytes(self._waiting[: _HEAD + length])
            del self._waiting[: _HEAD + length]
            event = self._event(first, flags_length >> 24, frame)
            if event is not None:
                yield event

    def reply(self, stream: int) -> bytes:
        """Return the frame that accepts a stream."""
        packed = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(Kind.SYN_REPLY, struct.pack(">I", stream) + packed)

    @staticmethod
    def data(stream: int, body: bytes, *, last: bool = False) -> bytes:
        """Return the frame of some bytes; `last` when no more come."""
        return struct.pack(">II", stream, (_FIN if last else 0) << 24 | len(body)) + body

    def _event(self, first: int, flags: int, frame: bytes) -> Event | None:
        body = frame[_HEAD:]
        if not first & _CONTROL << 16:
            return Bytes(first, body, bool(flags & _FIN))
        if (first >> 16) & ~_CONTROL != _VERSION:
            raise SpdyError(f"version {(first >> 16) & ~_CONTROL}")
        kind = first & 0xFFFF
        try:
            if kind == Kind.SYN_STREAM:
                return Opened(_number(body), self._headers(body[10:]))
            if kind == Kind.RST_STREAM:
                return Reset(_number(body))
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"a broken frame of kind {kind}: {error}") from error
        if kind == Kind.PING:
            return Ping(frame)
        return Leaving() if kind == Kind.GOAWAY else None

    def _headers(self, packed: bytes) -> dict[str, str]:
        text = self._inflate.decompress(packed, MAX_FRAME_BYTES)
        (count,) = struct.unpack_from(">I", text)
        at, words = 4, []
        for _ in range(2 * count):
            (length,) = struct.unpack_from(">I", text, at)
            words.append(text[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _number(body: bytes) -> int:
    (stream,) = struct.unpack_from(">I", body)
    return int(stream) & 0x7FFFFFFF


def _control(kind: Kind, body: bytes) -> bytes:
    return struct.pack(">HHI", _CONTROL | _VERSION, kind, len(body)) + body
