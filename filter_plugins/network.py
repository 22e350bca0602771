"""Filters of `isthmus.filters.network.layer` for Ansible."""

from collections.abc import Callable

from isthmus.filters.network import flannel as network_flannel
from isthmus.filters.network import layer as network


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return network.FILTERS | network_flannel.FILTERS
