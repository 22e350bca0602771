"""The desired state of a container: running, stopped, or restarted with another image.

It may be set at any time and is evaluated when the container has ended; the last change wins.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from isthmus.podproto.plan import Container


class Desired:
    """The desired state of one container.

    Attributes:
        stop: end it and do not restart it.
        replace: end it and restart it, whatever the restart policy.
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
        """Request its end."""
        self.stop = True
        self._news.set()

    def change(self, container: Container | None, *, now: bool) -> None:
        """Request another plan from its next start on.

        Args:
            container: its new plan; None while that is not known.
            now: whether it is restarted for this.
        """
        self._next, self.replace = container, self.replace or now
        self._news.set()

    async def pause(self, pause_s: float) -> None:
        """Wait until the time is over or the desired state changes."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), pause_s)

    async def another(self) -> None:
        """Wait until its image is available or its end is requested."""
        while self.is_held and not self.stop:
            self._news.clear()
            await self._news.wait()

    def taken(self) -> Container | None:
        """Return and clear its new plan, if any."""
        found, self._next, self.replace = self._next, None, False
        self._news.clear()
        return found
