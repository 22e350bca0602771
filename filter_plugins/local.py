"""Filters of `isthmus.filters.local`, `.podman` and `.image` for Ansible."""

from collections.abc import Callable

from isthmus.filters import image, local, podman


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by name."""
        return image.FILTERS | local.FILTERS | podman.FILTERS
