"""Filters of `isthmus.filters.monitoring` for Ansible."""

from collections.abc import Callable

from isthmus.filters.monitoring import FILTERS


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return FILTERS
