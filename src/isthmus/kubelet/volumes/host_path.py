"""hostPath: a path of the compute node, as the user may use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes.kind import Kind, Of
from isthmus.podproto.plan import Volume

_TYPES = frozenset({"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})


class HostPath(Kind):
    """A path of the node."""

    name = "hostPath"
    is_node_path = is_on_all_nodes = True
    no_propagation = (
        "of a hostPath is not offered: it needs the node;"
        " use an emptyDir or a claim, whose mounts the pod's containers share"
    )

    def problems(self, source: Any) -> Iterator[str]:
        """Give a type that nobody knows."""
        kind = source.get("type") or ""
        if kind and kind not in _TYPES:
            yield f"hostPath type {kind} is unknown; use one of {', '.join(sorted(_TYPES))}"

    def plan(self, of: Of, source: Any) -> Volume:
        """Return the path."""
        return Volume(of.name, "host", path=source["path"], host_type=source.get("type") or "")


KIND = HostPath()
