"""Filters of the role nodes: which nodes are meant, and whose drain it is."""

from isthmus.filters import nodes


class FilterModule:
    """Shim over isthmus.filters.nodes."""

    def filters(self):
        """Each public function whose name begins with nodes_."""
        return {name: getattr(nodes, name) for name in vars(nodes) if name.startswith("nodes_")}
