"""host: a path of the node, made where the pod says so."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.podproto.plan import Mount, Volume
from isthmus.supervisor.runtime.processes import StartError
from isthmus.supervisor.runtime.sandbox import bind
from isthmus.supervisor.volumes import fsgroup
from isthmus.supervisor.volumes.kind import Kind, VolumeError

if TYPE_CHECKING:
    from isthmus.supervisor.volumes.mounts import Folders

_CHECKS = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


class Host(Kind):
    """A path."""

    is_on_all_nodes = True

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return it."""
        return Path(volume.path or "/")

    def make(self, folders: Folders, volume: Volume) -> None:
        """See that it is what it must be, and give it to the pod's group."""
        path = self.place(folders, volume)
        _check(path, volume.host_type)
        if volume.gid is not None:
            _give(path, volume.gid, is_kept=volume.is_group_kept)

    def rank_mount(self, mount: Mount, volume: Volume) -> str:
        """Mount it whole: nobody could resolve a part of it safely on the other nodes."""
        if mount.sub_path:
            where = f"subPath {mount.sub_path} of volume {volume.name} is not offered with several tasks"
            raise StartError(f"{where}; mount the whole volume, or a hostPath of that folder")
        return bind(str(volume.path), mount.path, read_only=mount.read_only)


def _check(path: Path, wanted: str) -> None:
    if not wanted:
        if not path.exists():
            path.mkdir(parents=True)
        return
    if not path.exists() and wanted.endswith("OrCreate"):
        if wanted == "DirectoryOrCreate":
            path.mkdir(parents=True, mode=0o755)
        else:
            path.touch(0o644)
    if not path.exists():
        raise VolumeError(f"hostPath {path} is not there; it must be a {wanted}")
    if not _CHECKS[wanted](path.stat().st_mode):
        raise VolumeError(f"hostPath {path} is no {wanted}; change its type or the path")


def _give(path: Path, gid: int, *, is_kept: bool) -> None:
    try:
        fsgroup.give(path, gid, is_kept=is_kept)
    except PermissionError as error:
        remedy = "leave fsGroup out, or claim a volume of StorageClass local"
        raise VolumeError(f"fsGroup {gid}: its file system lets nobody give it to that group; {remedy}") from error
    except NotADirectoryError:
        return
    except RecursionError as error:
        raise VolumeError(f"fsGroup {gid}: its folders are nested too deep; leave fsGroup out") from error


KIND = Host()
