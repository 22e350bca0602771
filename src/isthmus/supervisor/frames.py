"""The frames of the channel between supervisor and kubelet.

u32, big-endian: length of the rest | u8 kind | body. Kind 0 is a UTF-8 JSON object with a `type`; kind 1 is
u32 stream | u8 channel | bytes, where no bytes mean that this channel is closed; kind 2 is the beginning of a message
that has more than one frame holds: the bodies of the kind 2 frames before a kind 0 frame belong to its JSON (a plan
with configMaps of 1 MiB is that large). A frame is at most 1 MiB, its length field included, a message 64 MiB. The
kubelet has a codec of its own; tests/support/channel_frames.json holds both to the same bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union

LIMIT_BYTES = 1 << 20
MESSAGE_BYTES = 64 << 20
MESSAGE, DATA, PART = 0, 1, 2
# Channels of a stream, as Kubernetes numbers them.
STDIN, STDOUT, STDERR, RESIZE = 0, 1, 2, 4
_LENGTH = struct.Struct("!I")
_STREAM = struct.Struct("!IB")
# What one frame can carry.
BODY_BYTES = LIMIT_BYTES - _LENGTH.size - 1
DATA_BYTES = BODY_BYTES - _STREAM.size

Message = dict[str, Any]


class FrameError(Exception):
    """The other side sent what is no frame; the connection cannot be used any more."""


@dataclass(frozen=True)
class Data:
    """Bytes of one channel of a stream; none mean that the channel is closed."""

    stream: int
    channel: int
    content: bytes


Frame = Union[Message, Data]


def message(content: Message) -> bytes:
    """Encode a JSON object as as many frames as it needs.

    Raises:
        FrameError: it is larger than a message may be.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    if len(text) > MESSAGE_BYTES:
        raise FrameError(f"a message of {len(text)} bytes; it may have {MESSAGE_BYTES}")
    parts = [text[start : start + BODY_BYTES] for start in range(0, len(text), BODY_BYTES)]
    return b"".join(_framed(PART, part) for part in parts[:-1]) + _framed(MESSAGE, parts[-1])


def data(stream: int, channel: int, content: bytes) -> bytes:
    """Encode bytes of one channel as as many frames as they need; none become the frame that closes it."""
    head = _STREAM.pack(stream, channel)
    starts = range(0, max(len(content), 1), DATA_BYTES)
    return b"".join(_framed(DATA, head + content[start : start + DATA_BYTES]) for start in starts)


class Decoder:
    """Cuts what arrives into messages and data; keeps what is not yet whole."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._parts = b""

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Give the messages and data that are whole now.

        Raises:
            FrameError: too long, of an unknown kind, or not what its kind promises.
        """
        self._kept += received
        while len(self._kept) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._kept)
            end = _LENGTH.size + length
            if end > LIMIT_BYTES or length < 1:
                raise FrameError(f"a frame of {length} bytes")
            if len(self._kept) < end:
                return
            body = bytes(self._kept[_LENGTH.size : end])
            del self._kept[:end]
            yield from self._taken(body[0], body[1:])

    def finish(self) -> None:
        """Say that nothing more comes.

        Raises:
            FrameError: something is not whole.
        """
        if self._kept or self._parts:
            raise FrameError(f"{len(self._kept) + len(self._parts)} bytes are left over")

    def _taken(self, kind: int, body: bytes) -> Iterator[Frame]:
        if kind == DATA:
            if len(body) < _STREAM.size:
                raise FrameError("a data frame without its stream")
            stream, channel = _STREAM.unpack_from(body)
            yield Data(stream, channel, body[_STREAM.size :])
        elif kind in (MESSAGE, PART):
            self._parts += body
            if len(self._parts) > MESSAGE_BYTES:
                raise FrameError(f"a message of more than {MESSAGE_BYTES} bytes")
            if kind == MESSAGE:
                text, self._parts = self._parts, b""
                yield _parsed(text)
        else:
            raise FrameError(f"a frame of kind {kind}")


def decode(received: bytes) -> list[Frame]:
    """Return the messages and data of bytes that hold only whole ones.

    Raises:
        FrameError: as `Decoder.feed` and `Decoder.finish`.
    """
    decoder = Decoder()
    frames = list(decoder.feed(received))
    decoder.finish()
    return frames


def _framed(kind: int, body: bytes) -> bytes:
    return _LENGTH.pack(1 + len(body)) + bytes([kind]) + body


def _parsed(text: bytes) -> Message:
    try:
        content = json.loads(text.decode())
    except ValueError as error:
        raise FrameError(f"a message that is no JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise FrameError("a message without a type")
    return content
