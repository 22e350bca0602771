"""Separate thread pools per concern: blocking on one daemon, or on the home, never blocks another.

The event loop's own threads are few (on one processor five), and a minute of a slow slurmctld fills them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Threads:
    """Some threads of a name; they are made when there is work.

    Args:
        name: of the concern.
        most: how many calls run at once; more wait.
    """

    def __init__(self, name: str, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def call(
        self, function: Callable[_Arguments, _Answer], *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Answer:
        """Run what blocks in one of the threads; return its result, or raise what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def stop(self) -> None:
        """Begin nothing more; what runs is not waited for here."""
        self._pool.shutdown(wait=False, cancel_futures=True)
