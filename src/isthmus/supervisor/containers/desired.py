"""What is desired of a container that may be anywhere between two of its starts: its end, or another image.

Desired come at any moment and are looked at when the container has ended; the last one counts.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from isthmus.podproto.plan import Container


class Desired:
    """The desired state of one container.

    Attributes:
        stop: it ends and does not start again.
        replace: it ends and starts again, whatever the restart policy.
    """

    def __init__(self) -> None:
        self.stop = self.replace = False
        self._next: Container | None = None
        self._news = asyncio.Event()

    @property
    def is_held(self) -> bool:
        """Whether it may not start before it has its new image."""
        return self.replace and self._next is None

    def end(self) -> None:
        """Desire its end."""
        self.stop = True
        self._news.set()

    def change(self, container: Container | None, *, now: bool) -> None:
        """Desire that it is another one from its next start on.

        Args:
            container: its new plan; None while that is not known.
            now: that start is to be soon.
        """
        self._next, self.replace = container, self.replace or now
        self._news.set()

    async def pause(self, pause_s: float) -> None:
        """Wait for so long, or until something is wanted."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), pause_s)

    async def another(self) -> None:
        """Wait until it is not held any more, or shall end."""
        while self.is_held and not self.stop:
            self._news.clear()
            await self._news.wait()

    def taken(self) -> Container | None:
        """Return its new plan if there is one; from now on it is not wanted any more."""
        found, self._next, self.replace = self._next, None, False
        self._news.clear()
        return found
