"""Filters of `isthmus.filters.network` for Ansible."""

from collections.abc import Callable

from isthmus.filters import network, network_flannel


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return network.FILTERS | network_flannel.FILTERS
