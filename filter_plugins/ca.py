"""Filters of `isthmus.filters.trust.ca` for Ansible."""

from collections.abc import Callable

from isthmus.filters.trust.ca import FILTERS


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return FILTERS
