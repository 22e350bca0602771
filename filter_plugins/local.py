"""Filters of `isthmus.filters.local.subnet`, `.podman` and `.image` for Ansible."""

from collections.abc import Callable

from isthmus.filters.images import image
from isthmus.filters.local import podman
from isthmus.filters.local import subnet as local


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return image.FILTERS | local.FILTERS | podman.FILTERS
