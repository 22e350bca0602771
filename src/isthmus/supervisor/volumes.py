"""The pod's volumes and small files, made inside its own mounts by whom the pod takes for root.

Under the pod's folder: `disk/<volume>` for volumes on the node's disk; `memory`, a tmpfs that only the pod's mounts
have, for all that may be secret; a tmpfs more for each volume in memory, with its size. A volume of files is switched
like the kubelet's: its names are links by way of `..data`, which is renamed in one step.
"""

from __future__ import annotations

import base64
import os
import shutil
import stat
import tempfile
from pathlib import Path

from . import linux, pause
from .plan import Keyed, Mount, Volume

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
        self.hosts = self.memory / "hosts"
        self.resolv = self.memory / "resolv.conf"

    def termination(self, container: str) -> Path:
        """Where a container's termination message is written."""
        return self.memory / "termination" / container

    def volume(self, volume: Volume) -> Path:
        """Where a volume's files are."""
        if volume["kind"] == "host":
            return Path(volume["path"] or "/")
        if volume["kind"] == "image":
            return self.images / volume["name"]
        if volume["kind"] == "memory":
            return self.base / "tmpfs" / volume["name"]
        return (self.memory / "files" if volume["kind"] == "files" else self.disk) / volume["name"]


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
    pause.write(str(folders.pause))
    _shield(folders.shields)
    folders.hosts.write_text(hosts, encoding="utf-8")
    folders.resolv.write_text(resolv, encoding="utf-8")
    for path in (folders.hosts, folders.resolv):
        path.chmod(0o644)


def make(folders: Folders, volumes: list[Volume]) -> None:
    """Make all volumes.

    Raises:
        VolumeError: one cannot be made; the message names it.
    """
    for volume in volumes:
        _make_named(folders.volume(volume), volume)


def update(folders: Folders, volumes: list[Volume]) -> None:
    """Give volumes of files their new content; they must be there already."""
    for volume in volumes:
        if volume["kind"] == "files":
            _switch(folders.volume(volume), volume)


def source(folders: Folders, mount: Mount, volume: Volume) -> str:
    """Return what a mount shows; a missing folder of `sub_path` is made.

    Raises:
        VolumeError: `sub_path` leads out of the volume.
    """
    whole = folders.volume(volume)
    if not mount["sub_path"]:
        return str(whole)
    part = Path(os.path.realpath(whole / mount["sub_path"]))
    if Path(os.path.realpath(whole)) not in (part, *part.parents):
        raise VolumeError(f"subPath {mount['sub_path']} leads out of volume {volume['name']}; name a path inside it")
    if not part.exists() and volume["kind"] == "image":
        raise VolumeError(f"subPath {mount['sub_path']} is not in the image of volume {volume['name']}; correct it")
    if not part.exists():
        _make_below(whole, part)
    return str(part)


def _make_below(whole: Path, part: Path) -> None:
    """Make a folder with those above it, each as open as the volume: who may write there may write here."""
    mode = stat.S_IMODE(whole.stat().st_mode)
    for folder in reversed([part, *part.parents]):
        if not folder.exists():
            folder.mkdir()
            folder.chmod(mode)


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

    An ignored signal stays ignored through execve(2), and libfuse leaves it so.
    """
    folder.mkdir()
    for name in _SERVERS:
        found = shutil.which(name)
        if found:
            script = folder / name
            script.write_text(f"#!/bin/sh\ntrap '' TERM INT HUP\nexec {found} \"$@\"\n", encoding="utf-8")
            script.chmod(0o755)


def _make_named(path: Path, volume: Volume) -> None:
    try:
        _make(path, volume)
    except (OSError, VolumeError) as error:
        raise VolumeError(f"volume {volume['name']}: {error}") from error


def _make(path: Path, volume: Volume) -> None:
    kind = volume["kind"]
    if kind == "host":
        _check_host(path, volume["host_type"])
        return
    path.mkdir(parents=True)
    if kind == "image":
        return
    if kind == "memory":
        size = f",size={volume['size_bytes']}" if volume["size_bytes"] else ""
        linux.mount(volume["name"], str(path), "tmpfs", _TMPFS, f"mode=0777{size}")
    path.chmod(0o755 if kind == "files" else 0o777)
    if kind == "files":
        _switch(path, volume)
    elif volume["gid"] is not None:
        os.chown(path, -1, volume["gid"])
        path.chmod(0o2777)


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


def _switch(path: Path, volume: Volume) -> None:
    """Write all files anew beside the old ones, then switch; take away what the new content lacks."""
    fresh = Path(tempfile.mkdtemp(dir=path, prefix="..", suffix=".data"))
    fresh.chmod(0o755)
    for file in volume["files"]:
        _write(fresh, file, volume["gid"])
    link = path / "..data"
    old = link.resolve() if link.is_symlink() else None
    (path / "..data_tmp").symlink_to(fresh.name)
    (path / "..data_tmp").replace(link)
    names = {Path(file["path"]).parts[0] for file in volume["files"]}
    for name in names:
        if not (path / name).is_symlink():
            (path / name).symlink_to(Path("..data") / name)
    for entry in path.iterdir():
        if entry.is_symlink() and entry.name not in names and not entry.name.startswith(".."):
            entry.unlink()
    if old is not None:
        shutil.rmtree(old)


def _write(folder: Path, file: Keyed, gid: int | None) -> None:
    parts = Path(file["path"]).parts
    if not parts or Path(file["path"]).is_absolute() or ".." in parts:
        raise VolumeError(f"{file['path']!r} is no path inside a volume")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whoever the container runs as may pass: sbatch hands on the control plane's umask, 077.
    for parent in path.relative_to(folder).parents[:-1]:
        (folder / parent).chmod(0o755)
    path.write_bytes(base64.b64decode(file["data"]))
    if gid is not None:
        os.chown(path, -1, gid)
    path.chmod(file["mode"] & 0o777)
