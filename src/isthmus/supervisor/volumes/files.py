"""files: given files, in memory, switched all at once.

It is switched like the kubelet's: its names are links by way of `..data`, which is renamed in one step. It is written
where no container sees it, and then moved.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.podproto.plan import File, Volume
from isthmus.supervisor.volumes.fsgroup import set_mode
from isthmus.supervisor.volumes.kind import Kind, VolumeError

if TYPE_CHECKING:
    from isthmus.supervisor.volumes.mounts import Folders


class Files(Kind):
    """Given files."""

    is_read_only = True

    def place(self, folders: Folders, volume: Volume) -> Path:
        """Return where they are."""
        return folders.memory / "files" / volume.name

    def make(self, folders: Folders, volume: Volume) -> None:
        """Write them."""
        path = self.place(folders, volume)
        path.mkdir(parents=True)
        set_mode(path, 0o755, volume.gid)
        _switch(folders, volume)

    def update(self, folders: Folders, volume: Volume) -> None:
        """Write what they are now."""
        _switch(folders, volume)


def _switch(folders: Folders, volume: Volume) -> None:
    """Write all files beside the old ones, then switch atomically; remove files that the new content lacks.

    A container that may mount can make its view of the volume writable, so what is found in it is not trusted.
    """
    path = KIND.place(folders, volume)
    staged = Path(tempfile.mkdtemp(dir=folders.staging, prefix="..", suffix=".data"))
    set_mode(staged, 0o755, volume.gid)
    for file in volume.files:
        _write(staged, file, volume.gid)
    staged.rename(path / staged.name)
    link = path / "..data"
    old = [entry for entry in path.iterdir() if entry.name.startswith("..") and entry.name != staged.name]
    fresh = folders.staging / "..data"
    fresh.symlink_to(staged.name)
    fresh.replace(link)
    names = {Path(file.path).parts[0] for file in volume.files}
    for name in names:
        if not (path / name).is_symlink():
            (path / name).symlink_to(Path("..data") / name)
    for entry in path.iterdir():
        if entry.is_symlink() and entry.name not in names and not entry.name.startswith(".."):
            entry.unlink()
    for entry in old:
        if entry != link:
            # Only what is a folder itself goes, never what a link leads to.
            shutil.rmtree(entry, ignore_errors=True)


def _write(folder: Path, file: File, gid: int | None) -> None:
    parts = Path(file.path).parts
    if not parts or Path(file.path).is_absolute() or ".." in parts:
        raise VolumeError(f"{file.path!r} is no path inside a volume")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Any user of the container may pass: sbatch propagates the control plane's umask, 077.
    for parent in path.relative_to(folder).parents[:-1]:
        set_mode(folder / parent, 0o755, gid)
    path.write_bytes(file.data)
    set_mode(path, file.mode & 0o777, gid)


KIND = Files()
