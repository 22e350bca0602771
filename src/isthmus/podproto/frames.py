"""Frames between the kubelet and a pod's supervisor: u32 length | u8 kind | body, all numbers big-endian.

kind 0  a UTF-8 JSON object with `type`
kind 1  u32 stream | u8 channel | bytes; channels as Kubernetes numbers them; an empty body closes that channel
kind 2  the beginning of a JSON object that is larger than a frame; the next frames are its other parts, kind 0 the last

A frame has at most 1 MiB, its length field included, a message 64 MiB (a plan with configMaps of 1 MiB is that large).
"""

from __future__ import annotations

import json
import struct
from asyncio import StreamReader
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

# A frame with its length field, and a whole message.
MAX_BYTES = 1 << 20
MESSAGE_BYTES = 64 << 20
# Small enough that a stop or a plan never waits long behind a stream.
CHUNK_BYTES = 1 << 16

_LENGTH = struct.Struct(">I")
_STREAM = struct.Struct(">IB")
HEAD_BYTES = _LENGTH.size
_PART_BYTES = MAX_BYTES - HEAD_BYTES - 1
_JSON, _DATA, _PART = 0, 1, 2

Message = dict[str, Any]


class Channel(IntEnum):
    """What a byte belongs to (Kubernetes, remotecommand v4 and v5)."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    RESIZE = 4


class FrameError(Exception):
    """The other side does not speak this protocol."""


class Data(NamedTuple):
    """Some bytes of a stream; none close the channel."""

    stream: int
    channel: int
    body: bytes


Frame = Message | Data


def message(content: Message) -> bytes:
    """Return the frames of a JSON object.

    Raises:
        FrameError: it is larger than a message may be.
    """
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MESSAGE_BYTES:
        raise FrameError(f"a {content['type']} of {len(body)} bytes; give the pod fewer configMaps and secrets")
    parts = [body[start : start + _PART_BYTES] for start in range(0, len(body), _PART_BYTES)]
    return b"".join(_framed(_PART, part) for part in parts[:-1]) + _framed(_JSON, parts[-1])


def chunks(body: bytes) -> Iterator[bytes]:
    """Yield bytes as frames carry them; once nothing when there are none."""
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]


def data(stream: int, channel: int, chunk: bytes) -> bytes:
    """Return the frame that carries a chunk; it closes the channel when there are no bytes."""
    return _framed(_DATA, _STREAM.pack(stream, channel) + chunk)


def length(head: bytes) -> int:
    """Return how many bytes follow the first HEAD_BYTES of a frame.

    Raises:
        FrameError: no frame has that many.
    """
    (count,) = _LENGTH.unpack(head)
    if not 1 <= count <= MAX_BYTES - HEAD_BYTES:
        raise FrameError(f"a frame of {count} bytes")
    return int(count)


class Assembler:
    """Makes data of frames, and messages, which may come in several.

    Args:
        most: the bytes of a message.
    """

    def __init__(self, most: int = MESSAGE_BYTES) -> None:
        self._most = most
        self._text = bytearray()

    def take(self, frame: bytes) -> Frame | None:
        """Take what follows the length; return what is whole now.

        Raises:
            FrameError: of an unknown kind, too much, no JSON object, or bytes of a stream within a message.
        """
        kind, body = frame[0], frame[1:]
        if kind == _DATA and len(body) >= _STREAM.size and not self._text:
            stream, channel = _STREAM.unpack_from(body)
            return Data(stream, channel, body[_STREAM.size :])
        if kind not in (_JSON, _PART):
            raise FrameError(f"a frame of kind {kind}")
        if not body:
            raise FrameError("a part of a message without bytes")
        self._text += body
        if len(self._text) > self._most:
            raise FrameError(f"a message of more than {self._most} bytes")
        if kind == _PART:
            return None
        text, self._text = self._text, bytearray()
        return _parsed(text)


async def read(reader: StreamReader, most: int = MESSAGE_BYTES) -> Frame:
    """Read what comes next.

    Args:
        reader: of the connection.
        most: the bytes of a message.

    Raises:
        FrameError: it is no frame, or not what its kind promises.
        asyncio.IncompleteReadError: the other side has gone.
    """
    assembler = Assembler(most)
    while True:
        frame = await reader.readexactly(length(await reader.readexactly(HEAD_BYTES)))
        if (item := assembler.take(frame)) is not None:
            return item


def _framed(kind: int, body: bytes) -> bytes:
    return _LENGTH.pack(len(body) + 1) + bytes([kind]) + body


def _parsed(text: bytearray) -> Message:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("a message that is no JSON") from error
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FrameError("a message without a type")
    return content
