"""An event loop whose clock stands still while anything runs, and jumps to the next timer when nothing does.

Hours of many loops pass in seconds, and always in the same way. What would run in threads runs in the loop (`inline`).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from isthmus.support.threads import Threads

_Result = TypeVar("_Result")


class _Selector(selectors.DefaultSelector):
    """Sleeps by moving the loop's clock."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Return what is ready; when nothing is, the time of the next timer has come."""
        ready = super().select(0)
        assert ready or timeout is not None, "nothing will ever happen again"
        if not ready:
            self.now_s += timeout or 0.0
        return ready


def run(main: Callable[[Callable[[], float]], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run a program that is given the clock."""
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now_s  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop.time))


def inline(monkeypatch: Any, took_s: float | Callable[[], float] = 0.0) -> None:
    """Have threads' calls run in the loop; each takes some seconds of its clock."""
    taking = took_s if callable(took_s) else lambda: took_s

    async def call(_threads: Threads, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(taking())
        return function(*args, **kwargs)

    monkeypatch.setattr(Threads, "call", call)
