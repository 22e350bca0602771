"""emptyDir: an empty folder that the pod's containers share, on the node's disk or in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes.kind import Kind, Of
from isthmus.model.kubernetes.quantities import whole
from isthmus.podproto.plan import Volume


class EmptyDir(Kind):
    """An empty folder."""

    name = "emptyDir"

    def problems(self, source: Any) -> Iterator[str]:
        """Give a medium that there is not."""
        medium = source.get("medium") or ""
        if medium not in ("", "Memory"):
            yield f"medium {medium} is not offered: Slurm gives no huge pages; use Memory"

    def plan(self, of: Of, source: Any) -> Volume:
        """Return the folder."""
        limit = source.get("sizeLimit")
        size_bytes = None if limit in (None, "0") else whole(limit)
        return Volume(of.name, "memory" if source.get("medium") == "Memory" else "dir", size_bytes, gid=of.group)


KIND = EmptyDir()
