"""Frames between the kubelet and a pod's supervisor: u32 length | u8 kind | body, all numbers big-endian.

kind 0  a JSON object with `type`
kind 1  u32 stream | u8 channel | bytes; channels as Kubernetes numbers them; an empty body closes that channel
kind 2  the beginning of a JSON object that is larger than a frame; kind 0 brings its end

The supervisor has a codec of its own; tests/support/channel_frames.json holds both to the same bytes.
"""

from __future__ import annotations

import json
import struct
from asyncio import StreamReader
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

# A frame with its length field, and a whole message.
MAX_BYTES = 1 << 20
MESSAGE_BYTES = 64 << 20
# Small enough that a stop or a plan never waits long behind a stream.
CHUNK_BYTES = 1 << 16

_LENGTH = struct.Struct(">I")
_STREAM = struct.Struct(">IB")
_PART_BYTES = MAX_BYTES - _LENGTH.size - 1
_JSON, _DATA, _PART = 0, 1, 2


class Channel(IntEnum):
    """What a byte belongs to (Kubernetes, remotecommand v4 and v5)."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    RESIZE = 4


class FrameError(Exception):
    """The other side does not speak this protocol."""


@dataclass(frozen=True, slots=True)
class Data:
    """Some bytes of a stream; none close the channel."""

    stream: int
    channel: int
    body: bytes


def message(content: dict[str, Any]) -> bytes:
    """Return the frames of a JSON object.

    Raises:
        FrameError: it is larger than a message may be.
    """
    body = json.dumps(content, separators=(",", ":")).encode()
    if len(body) > MESSAGE_BYTES:
        raise FrameError(f"a {content['type']} of {len(body)} bytes; give the pod fewer configMaps and secrets")
    parts = [body[start : start + _PART_BYTES] for start in range(0, len(body), _PART_BYTES)]
    return b"".join(_framed(_PART, part) for part in parts[:-1]) + _framed(_JSON, parts[-1])


def data(stream: int, channel: int, body: bytes) -> Iterator[bytes]:
    """Yield frames that carry these bytes; one that closes the channel when there are none."""
    head = _STREAM.pack(stream, channel)
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        yield _framed(_DATA, head + body[start : start + CHUNK_BYTES])


async def read(reader: StreamReader, most: int = MESSAGE_BYTES) -> dict[str, Any] | Data:
    """Read what comes next.

    Args:
        reader: of the connection.
        most: the bytes of a message.

    Raises:
        FrameError: too long, of an unknown kind, or no JSON object.
        asyncio.IncompleteReadError: the other side has gone.
    """
    text = bytearray()
    while True:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if not 1 <= length <= MAX_BYTES - _LENGTH.size:
            raise FrameError(f"a frame of {length} bytes")
        frame = await reader.readexactly(length)
        kind, body = frame[0], frame[1:]
        if kind == _DATA and len(body) >= _STREAM.size:
            stream, channel = _STREAM.unpack_from(body)
            return Data(stream, channel, body[_STREAM.size :])
        if kind not in (_JSON, _PART):
            raise FrameError(f"a frame of kind {kind}")
        if not body:
            raise FrameError("a part of a message without bytes")
        text += body
        if len(text) > most:
            raise FrameError(f"a message of more than {most} bytes")
        if kind == _JSON:
            return _parsed(text)


def _framed(kind: int, body: bytes) -> bytes:
    return _LENGTH.pack(len(body) + 1) + bytes([kind]) + body


def _parsed(text: bytearray) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("a message that is no JSON") from error
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FrameError("a message without a type")
    return content
