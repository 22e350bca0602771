"""Periodic progress during work that reports none itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ticking(report: Callable[[float], None], every_s: float = 30) -> Iterator[None]:
    """Call `report` with the seconds since the start, again and again until the block ends."""
    ended = threading.Event()
    started = time.monotonic()

    def tick() -> None:
        while not ended.wait(every_s):
            report(time.monotonic() - started)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
