"""The pod's volumes and small files, made inside its own mounts by whom the pod takes for root.

Under the pod's folder: `disk/<volume>` for volumes on the node's disk; `memory`, a tmpfs that only the pod's mounts
have, for all that may be secret; a tmpfs more for each volume in memory, with its size. How a volume is made, its kind
says (`registry`).

A part of a volume (subPath) is resolved below the volume's descriptor (see `paths`) and mounted from the descriptor it
leads to, in `memory/parts`: Apptainer gets that place, which no container can change.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from isthmus.podproto.plan import Mount, Volume
from isthmus.supervisor.runtime import inside, linux
from isthmus.supervisor.volumes import paths, propagation, registry
from isthmus.supervisor.volumes.kind import VolumeError

_TMPFS = linux.MS_NOSUID | linux.MS_NODEV
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
# Apptainer has fuse-overlayfs lay a writable root over an image that FUSE serves, as old kernels could not. Linux 5.11
# and later can, for half of what a small pod's root costs. An image decides about its own root alone: below it is no
# layer that its attributes `user.overlay.*` could lead into. Where the kernel refuses, it is as Apptainer wants it.
_KERNEL_OVERLAY = """\
for word; do
    [ "$before" != -o ] || options=$word
    before=$word
done
kept=userxattr
set -f
IFS=,
for option in $options; do
    case $option in lowerdir=* | upperdir=* | workdir=*) kept=$kept,$option ;; esac
done
unset IFS
if {mount} --no-mtab --types overlay --options "$kept" overlay "$before" 2>/dev/null; then
    exec {findmnt} --poll=umount --first-only --noheadings --mountpoint "$before" >/dev/null
fi
"""


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
        return registry.of(volume).place(self, volume)


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
    inside.find(inside.HOLD)
    _shield(folders.shields, folders.roots)
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
    """Give volumes their new content; they must be there already."""
    for volume in volumes:
        registry.of(volume).update(folders, volume)


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
        mode = None if registry.of(volume).is_fixed else stat.S_IMODE(os.fstat(folder).st_mode)
        return paths.opened(folder, path, linux.BENEATH, mode)
    except OSError as error:
        raise VolumeError(_no_part(path, volume, error)) from error
    finally:
        os.close(folder)


def _no_part(path: str, volume: Volume, error: OSError) -> str:
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return f"subPath {path} leads out of volume {volume.name}; name a path inside it"
    if error.errno == errno.ENOENT and registry.of(volume).is_fixed:
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


def _shield(folder: Path, roots: Path) -> None:
    """Stand before the programs that serve a root file system: Slurm's SIGTERM to all processes must not end them.

    An ignored signal stays ignored through execve(2), and libfuse leaves it so. Files of an image are whose the image
    says, not the user's as Apptainer asks for, and the kernel heeds their modes.
    """
    folder.mkdir()
    for name in _SERVERS:
        found = shutil.which(name)
        if found:
            first = _OWNERS if name in IMAGE_SERVERS else ""
            if name == "fuse-overlayfs":
                first = _kernel_overlay(roots)
            script = folder / name
            script.write_text(f"#!/bin/sh\ntrap '' TERM INT HUP\n{first}exec {found} \"$@\"\n", encoding="utf-8")
            script.chmod(0o755)


def _kernel_overlay(roots: Path) -> str:
    """Return shell that mounts by the kernel and stays until the mount has gone; nothing where that is not for sure.

    What is removed and made again is marked by an attribute, which a tmpfs before Linux 6.6 cannot hold.
    """
    mount, findmnt = shutil.which("mount"), shutil.which("findmnt")
    try:
        os.setxattr(roots, "user.isthmus", b"")
        os.removexattr(roots, "user.isthmus")
    except OSError:
        return ""
    return _KERNEL_OVERLAY.format(mount=mount, findmnt=findmnt) if mount and findmnt else ""


def _make_named(folders: Folders, volume: Volume) -> None:
    try:
        registry.of(volume).make(folders, volume)
    except (OSError, VolumeError) as error:
        raise VolumeError(f"volume {volume.name}: {error}") from error
