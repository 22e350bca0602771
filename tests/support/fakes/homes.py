"""Homes for the supervisor's parts: one that answers at once, in the caller's own thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def inline(work: Callable[[], object], then: Callable[[OSError | None], object]) -> None:
    """Do work now; `then` gets its error."""
    try:
        work()
    except OSError as error:
        then(error)
    else:
        then(None)


async def call(work: Callable[[], T]) -> T:
    """Return what work returns."""
    return work()
