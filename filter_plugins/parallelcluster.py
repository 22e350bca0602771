"""Filters of `isthmus.filters.parallelcluster` for Ansible."""

from collections.abc import Callable

from isthmus.filters.parallelcluster.filters import FILTERS


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return FILTERS
