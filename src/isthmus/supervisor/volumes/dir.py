"""dir: an empty folder on the node's disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.podproto.plan import Volume
from isthmus.supervisor.volumes import fsgroup
from isthmus.supervisor.volumes.kind import Kind

if TYPE_CHECKING:
    from isthmus.supervisor.volumes.mounts import Folders


class Dir(Kind):
    """A folder."""

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return where it is."""
        return folders.disk / volume.name

    def make(self, folders: Folders, volume: Volume) -> None:
        """Make it, for everybody in the pod."""
        path = self.place(folders, volume)
        path.mkdir(parents=True)
        fsgroup.set_mode(path, 0o777, volume.gid)


KIND = Dir()
