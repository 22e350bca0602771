"""Filters of `isthmus.filters.workloads.offer` for Ansible."""

from collections.abc import Callable

from isthmus.filters.workloads.offer import FILTERS


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return FILTERS
