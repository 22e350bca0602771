"""mountPropagation: what a container mounts in a volume reaches those of the pod that ask for it.

The kernel passes mounts on among those of one peer group (mount_namespaces(7)). So a volume that some container wants
like this is mounted once more, shared, where only the pod's own mounts have it, and not in its first place: there the
supervisor reads and writes files, and must not meet a container's mounts. Apptainer makes a container's mounts
as always, for the order and for the mount points; then a copy of the shared one is laid over each that propagates: as
it is (Bidirectional), or as one that only receives (HostToContainer). What does not propagate becomes private.

None of this reaches the node: all mounts of the pod are private to it, and a hostPath's are refused by the kubelet.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from isthmus.podproto.plan import Mount, Propagation
from isthmus.supervisor.runtime import linux
from isthmus.supervisor.volumes import paths


def shown(whole: Path, shared: Path, mount: Mount) -> Path:
    """Return where a volume is to be mounted from; it is shared now if this mount is the first that wants it.

    Args:
        whole: where its files are.
        shared: where it is mounted once more.
        mount: of a container.
    """
    if mount.propagation is not Propagation.NONE:
        _share(whole, shared)
    # With what is mounted in it by now, as everywhere.
    return shared if os.path.ismount(shared) else whole


def is_shared(shared: Path) -> bool:
    """Return whether a volume was shared."""
    return os.path.ismount(shared)


def _share(whole: Path, shared: Path) -> None:
    shared.parent.mkdir(mode=0o700, exist_ok=True)
    with open(shared.parent / f"{shared.name}.lock", "w", encoding="ascii") as lock:
        # Containers start at the same time.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.ismount(shared):
            return
        shared.mkdir(exist_ok=True)
        source = os.open(whole, os.O_PATH | os.O_CLOEXEC)
        try:
            linux.bind(source, str(shared))
        finally:
            os.close(source)
        linux.mount("none", str(shared), "", linux.MS_REC | linux.MS_SHARED)


def lay(mounts: int, root: int, wanted: Iterable[tuple[str, str, str]]) -> None:
    """Set the propagation of a container's mounts; this process stays in the container.

    Args:
        mounts: the descriptor of its mount namespace.
        root: that of its root folder.
        wanted: of each mount its source among the pod's, its place in the container and its propagation.

    Raises:
        OSError: the kernel does not do it.
    """
    copies = [(None if how == Propagation.NONE else linux.copied(source), place, how) for source, place, how in wanted]
    linux.setns(mounts, linux.NEWNS)
    os.fchdir(root)
    os.chroot(".")
    inside = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for copy, place, how in copies:
        # The image may have put a link there; Apptainer has followed it inside the root, too.
        found = paths.opened(inside, place, linux.IN_ROOT)
        if copy is None:
            linux.set_mount(found, propagation=linux.MS_PRIVATE, whole=True)
            continue
        if os.fstat(found).st_ino != os.fstat(copy).st_ino or os.fstat(found).st_dev != os.fstat(copy).st_dev:
            raise OSError(errno.ESTALE, f"{place} does not show its volume")
        # As Apptainer has made the one below: read-only or not, no device, no set-id program.
        linux.set_mount(copy, attributes=os.fstatvfs(found).f_flag & linux.MOUNT_ATTRIBUTES)
        if how != Propagation.BOTH:
            linux.set_mount(copy, propagation=linux.MS_SLAVE, whole=True)
        linux.lay(copy, found)


def take_away(place: str) -> None:
    """Unmount a part of a volume; what containers have mounted in the volume stays where others see it."""
    with suppress(OSError):
        linux.mount("none", place, "", linux.MS_REC | linux.MS_PRIVATE)
    linux.unmount(place)
