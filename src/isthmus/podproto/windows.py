"""Flow control of the streams that share a connection: each has a window in each direction, as in HTTP/2 and SSH.

Who receives has granted a number of bytes and grants more, by a message {type: window, stream, bytes}, as its reader
takes them; who sends waits when a stream has none left. A reader who takes nothing so stops its own stream and nothing
else: reports, probes' results and other streams never wait for it, and neither side keeps more of a stream than its
window (RFC 9113, 5.2; RFC 4254, 5.2).
"""

from __future__ import annotations

import asyncio

from isthmus.podproto.frames import CHUNK_BYTES, FrameError, Message

WINDOW_BYTES = 1 << 20
# A frame counts as that much more than its bytes: many small ones take memory, too.
FRAME_BYTES = 64


def cost(body: bytes) -> int:
    """Return what a frame with these bytes takes of a window."""
    return len(body) + FRAME_BYTES


def grant(stream: int, count: int) -> Message:
    """Return the message that lets the other side send so many bytes more."""
    return {"type": "window", "stream": stream, "bytes": count}


class Outgoing:
    """What may still be sent of a stream.

    Args:
        count: what the other side has granted so far.
    """

    def __init__(self, count: int = 0) -> None:
        self._left = count
        self._changed = asyncio.Event()
        self._is_closed = False
        self._waiting = 0

    @property
    def is_waiting(self) -> bool:
        """Whether somebody waits for a grant."""
        return self._waiting > 0

    def add(self, count: int) -> None:
        """Take a grant."""
        self._left += count
        self._changed.set()

    def close(self) -> None:
        """Let all who wait go: the stream is over."""
        self._is_closed = True
        self._changed.set()

    async def take(self, body: bytes) -> bool:
        """Wait until a chunk may be sent; return False if the stream is over first."""
        self._waiting += 1
        try:
            while not self._is_closed and self._left < cost(body):
                self._changed.clear()
                await self._changed.wait()
        finally:
            self._waiting -= 1
        self._left -= cost(body)
        return not self._is_closed


class Incoming:
    """What the other side may still send of a stream, and what its reader has taken since the last grant.

    Args:
        size: of the window; at least what two chunks cost, or a sender could wait for a grant that never comes.
    """

    def __init__(self, size: int = WINDOW_BYTES) -> None:
        if size < 2 * (CHUNK_BYTES + FRAME_BYTES):
            raise ValueError(f"a window of {size} bytes")
        self._half = size // 2
        self._left = size
        self._taken = 0

    def received(self, body: bytes) -> None:
        """Count a chunk that has come.

        Raises:
            FrameError: it is more than was granted.
        """
        self._left -= cost(body)
        if self._left < 0:
            raise FrameError("more of a stream than its window has")

    def taken(self, body: bytes) -> int:
        """Count a chunk that its reader has taken; return what to grant now, mostly nothing."""
        self._taken += cost(body)
        if self._taken < self._half:
            return 0
        count, self._taken = self._taken, 0
        self._left += count
        return count
