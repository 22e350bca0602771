"""Filters of the role provider_local: podman nodes and their image."""

from isthmus.filters import image, local, podman


class FilterModule:
    """Shim over isthmus.filters."""

    def filters(self):
        """Each public function of both modules whose name begins with local_."""
        modules = (image, local, podman)
        return {
            name: getattr(module, name)
            for module in modules
            for name in vars(module)
            if name.startswith("local_")
        }
