"""Filters of `isthmus.filters.network` and of the drivers for Ansible."""

from collections.abc import Callable

from isthmus.filters.drivers import filters as drivers
from isthmus.filters.network import encryption, gateways, ipv6
from isthmus.filters.network import layer as network


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return network.FILTERS | encryption.FILTERS | gateways.FILTERS | ipv6.FILTERS | drivers.FILTERS
