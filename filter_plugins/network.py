"""Filters of `isthmus.filters.network` for Ansible."""

from collections.abc import Callable

from isthmus.filters.network import FILTERS


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return FILTERS
