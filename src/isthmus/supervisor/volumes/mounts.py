"""The pod's volumes and small files, made inside its own mounts by whom the pod takes for root.

Under the pod's folder: `disk/<volume>` for volumes on the node's disk; `memory`, a tmpfs that only the pod's mounts
have, for all that may be secret; a tmpfs more for each volume in memory, with its size. A volume of files is switched
like the kubelet's: its names are links by way of `..data`, which is renamed in one step. It is written where no
container sees it, and then moved.

A part of a volume (subPath) is resolved below the volume's descriptor (see `paths`) and mounted from the descriptor it
leads to, in `memory/parts`: Apptainer gets that place, which no container can change.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from isthmus.podproto.plan import File, Mount, Volume
from isthmus.supervisor.runtime import linux, pause
from isthmus.supervisor.volumes import fsgroup, paths, propagation

_TMPFS = linux.MS_NOSUID | linux.MS_NODEV
_CHECKS = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}
# What Apptainer looks for on PATH to mount images.
IMAGE_SERVERS = ("squashfuse_ll", "squashfuse")
_SERVERS = (*IMAGE_SERVERS, "fuse-overlayfs", "fuse2fs")
# Apptainer's options end in `,uid=0,gid=0`. Without `suid` libfuse mounts so that set-id bits count for nothing.
_OWNERS = """\
for word; do
    shift
    case $before$word in -oallow_other,*,uid=*) word=${word%%,uid=*},default_permissions,suid ;; esac
    before=$word
    set -- "$@" "$word"
done
"""


_GROUP_READS, _GROUP_PASSES = 0o440, 0o2550


class VolumeError(Exception):
    """A volume cannot be what the pod wants it to be."""


class Folders:
    """Where a pod's files lie on this node, below its folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.memory = base / "memory"
        self.disk = base / "disk"
        self.roots = base / "roots"
        self.images = base / "images"
        self.tmp = base / "tmp"
        self.shm = base / "shm"
        self.pause = self.memory / "pause"
        self.shields = self.memory / "shields"
        self.parts = self.memory / "parts"
        self.shared = self.memory / "shared"
        self.staging = self.memory / "staging"
        self.hosts = self.memory / "hosts"
        self.resolv = self.memory / "resolv.conf"

    def termination(self, container: str) -> Path:
        """Where a container's termination message is written."""
        return self.memory / "termination" / container

    def volume(self, volume: Volume) -> Path:
        """Where a volume's files are."""
        if volume.kind == "host":
            return Path(volume.path or "/")
        if volume.kind == "image":
            return self.images / volume.name
        if volume.kind == "memory":
            return self.base / "tmpfs" / volume.name
        return (self.memory / "files" if volume.kind == "files" else self.disk) / volume.name


def prepare(folders: Folders, hosts: str, resolv: str) -> None:
    """Make what every pod has.

    Raises:
        OSError: the kernel or the disk refuses.
    """
    for folder in (folders.memory, folders.disk, folders.roots, folders.tmp, folders.shm):
        folder.mkdir(exist_ok=True)
    linux.mount("memory", str(folders.memory), "tmpfs", _TMPFS, "mode=0755")
    linux.mount("shm", str(folders.shm), "tmpfs", _TMPFS, "mode=1777")
    folders.termination("").mkdir()
    for folder in (folders.parts, folders.staging):
        folder.mkdir(mode=0o700)
    pause.write(str(folders.pause))
    _shield(folders.shields)
    folders.hosts.write_text(hosts, encoding="utf-8")
    folders.resolv.write_text(resolv, encoding="utf-8")
    for path in (folders.hosts, folders.resolv):
        path.chmod(0o644)


def make(folders: Folders, volumes: Iterable[Volume]) -> None:
    """Make all volumes.

    Raises:
        VolumeError: one cannot be made; the message names it.
    """
    for volume in volumes:
        _make_named(folders, volume)


def update(folders: Folders, volumes: Iterable[Volume]) -> None:
    """Give volumes of files their new content; they must be there already."""
    for volume in volumes:
        if volume.kind == "files":
            _switch(folders, volume)


def source(folders: Folders, mount: Mount, volume: Volume, place: Path) -> str:
    """Return what a mount shows; a missing folder of `sub_path` is made.

    Args:
        folders: the pod's.
        mount: of a container.
        volume: which it mounts.
        place: where a part of the volume is mounted first; nothing is there yet.

    Raises:
        VolumeError: `sub_path` leads out of the volume, or nowhere.
    """
    whole = propagation.shown(folders.volume(volume), folders.shared / volume.name, mount)
    if not mount.sub_path:
        return str(whole)
    part = _part(whole, mount.sub_path, volume)
    try:
        # As open as a mount point must be: what is mounted there has its own mode.
        place.mkdir() if stat.S_ISDIR(os.fstat(part).st_mode) else place.touch(exist_ok=False)
        linux.bind(part, str(place))
    finally:
        os.close(part)
    return str(place)


def _part(whole: Path, path: str, volume: Volume) -> int:
    folder = os.open(whole, os.O_PATH | os.O_CLOEXEC)
    try:
        # What is made is as open as the volume: who may write there may write here.
        mode = None if volume.kind == "image" else stat.S_IMODE(os.fstat(folder).st_mode)
        return paths.opened(folder, path, linux.BENEATH, mode)
    except OSError as error:
        raise VolumeError(_no_part(path, volume, error)) from error
    finally:
        os.close(folder)


def _no_part(path: str, volume: Volume, error: OSError) -> str:
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return f"subPath {path} leads out of volume {volume.name}; name a path inside it"
    if error.errno == errno.ENOENT and volume.kind == "image":
        return f"subPath {path} is not in the image of volume {volume.name}; correct it"
    if error.errno == errno.ENOENT:
        return f"subPath {path} of volume {volume.name} is a link to nothing; correct it"
    if error.errno == errno.ENOSYS:
        return f"subPath {path} needs Linux 5.6 on the node (openat2); mount the whole volume {volume.name}"
    return f"subPath {path} of volume {volume.name}: {os.strerror(error.errno or errno.EIO)}; correct it"


def fresh_parts(folders: Folders, container: str) -> Path:
    """Make the empty folder for a container's parts of volumes; what an earlier start mounted there goes."""
    folder = folders.parts / container
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        try:
            propagation.take_away(str(old))
        except OSError as error:
            if error.errno != errno.EINVAL:  # nothing was mounted
                raise
        # Never with what is in it: were the mount still there, that would be the volume's.
        old.rmdir() if old.is_dir() else old.unlink()
    return folder


def fresh_root(folders: Folders, container: str) -> str:
    """Make the empty folder that takes what a container writes to its root; what an earlier start left goes."""
    root = folders.roots / container
    shutil.rmtree(root, ignore_errors=True)
    (root / "upper").mkdir(parents=True)
    # The container's `/`: others than root must be able to look into it.
    (root / "upper").chmod(0o755)
    return str(root)


def fresh_termination(folders: Folders, container: str) -> str:
    """Make the empty file for a termination message."""
    path = folders.termination(container)
    path.write_bytes(b"")
    path.chmod(0o666)
    return str(path)


def _shield(folder: Path) -> None:
    """Stand before the programs that serve a root file system: Slurm's SIGTERM to all processes must not end them.

    An ignored signal stays ignored through execve(2), and libfuse leaves it so. Files of an image are whose the image
    says, not the user's as Apptainer asks for, and the kernel heeds their modes.
    """
    folder.mkdir()
    for name in _SERVERS:
        found = shutil.which(name)
        if found:
            owners = _OWNERS if name in IMAGE_SERVERS else ""
            script = folder / name
            script.write_text(f"#!/bin/sh\ntrap '' TERM INT HUP\n{owners}exec {found} \"$@\"\n", encoding="utf-8")
            script.chmod(0o755)


def _make_named(folders: Folders, volume: Volume) -> None:
    try:
        _make(folders, volume)
    except (OSError, VolumeError) as error:
        raise VolumeError(f"volume {volume.name}: {error}") from error


def _make(folders: Folders, volume: Volume) -> None:
    path, kind = folders.volume(volume), volume.kind
    if kind == "host":
        _check_host(path, volume.host_type)
        if volume.gid is not None:
            _give_all(path, volume.gid, is_kept=volume.is_group_kept)
        return
    path.mkdir(parents=True)
    if kind == "image":
        return
    if kind == "memory":
        size = f",size={volume.size_bytes}" if volume.size_bytes else ""
        linux.mount(volume.name, str(path), "tmpfs", _TMPFS, f"mode=0777{size}")
    _give(path, 0o755 if kind == "files" else 0o777, volume.gid)
    if kind == "files":
        _switch(folders, volume)


def _give_all(path: Path, gid: int, *, is_kept: bool) -> None:
    try:
        fsgroup.give(path, gid, is_kept=is_kept)
    except PermissionError as error:
        remedy = "leave fsGroup out, or claim a volume of StorageClass local"
        raise VolumeError(f"fsGroup {gid}: its file system lets nobody give it to that group; {remedy}") from error
    except NotADirectoryError:
        return
    except RecursionError as error:
        raise VolumeError(f"fsGroup {gid}: its folders are nested too deep; leave fsGroup out") from error


def _check_host(path: Path, wanted: str) -> None:
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


def _switch(folders: Folders, volume: Volume) -> None:
    """Write all files anew beside the old ones, then switch; take away what the new content lacks.

    A container that may mount can make its view of the volume writable, so what is found in it is not trusted.
    """
    path = folders.volume(volume)
    staged = Path(tempfile.mkdtemp(dir=folders.staging, prefix="..", suffix=".data"))
    _give(staged, 0o755, volume.gid)
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
    # Whoever the container runs as may pass: sbatch hands on the control plane's umask, 077.
    for parent in path.relative_to(folder).parents[:-1]:
        _give(folder / parent, 0o755, gid)
    path.write_bytes(file.data)
    _give(path, file.mode & 0o777, gid)


def _give(path: Path, mode: int, gid: int | None) -> None:
    """Give a file or folder its mode, and a group with the rights that Kubernetes adds for it (SetVolumeOwnership).

    The group reads what the owner alone could; what is made in a folder is the group's, too.
    """
    if gid is not None:
        os.chown(path, -1, gid)
        mode |= _GROUP_PASSES if path.is_dir() else _GROUP_READS
    path.chmod(mode)
