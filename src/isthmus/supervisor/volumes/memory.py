"""memory: an empty folder in memory, with a size of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.podproto.plan import Volume
from isthmus.supervisor.runtime import linux
from isthmus.supervisor.volumes import fsgroup
from isthmus.supervisor.volumes.kind import Kind

if TYPE_CHECKING:
    from isthmus.supervisor.volumes.mounts import Folders


class Memory(Kind):
    """A tmpfs."""

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return where it is."""
        return folders.base / "tmpfs" / volume.name

    def make(self, folders: Folders, volume: Volume) -> None:
        """Mount it, for everybody in the pod."""
        path = self.place(folders, volume)
        path.mkdir(parents=True)
        size = f",size={volume.size_bytes}" if volume.size_bytes else ""
        linux.mount(volume.name, str(path), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode=0777{size}")
        fsgroup.set_mode(path, 0o777, volume.gid)


KIND = Memory()
