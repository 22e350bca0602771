"""fsGroup: the group of a volume's files, as Kubernetes' SetVolumeOwnership gives it.

`set_mode` is for what the supervisor has just made, `give` for volumes that others made. Containers of other pods may
change these meanwhile. So no link is followed: groups are given to names as they are, and modes to descriptors of what
was opened, files and folders only. (/proc here is of other processes: a descriptor of O_PATH would have no name in it.)
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# The group reads and writes, passes folders, and has what is made in them.
_FILE, _FOLDER = 0o660, 0o2770
# Of what the supervisor itself makes the group reads what the owner alone could.
_GROUP_READS, _GROUP_PASSES = 0o440, 0o2550


def give(folder: Path, gid: int, *, is_kept: bool = False) -> None:
    """Give a folder, and all below it on the same file system, to a group; the folder itself comes last.

    Args:
        folder: may be a link, as for a mount.
        gid: the group.
        is_kept: do nothing where the folder itself is the group's already (fsGroupChangePolicy: OnRootMismatch);
            a run that was cut off has not come to it.

    Raises:
        OSError: the file system does not let its owner give files to the group.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(top)
        if is_kept and found.st_gid == gid and found.st_mode & _FOLDER == _FOLDER:
            return
        for _, _, names, descriptor in os.fwalk(".", topdown=False, dir_fd=top):
            if os.fstat(descriptor).st_dev == found.st_dev:
                for name in names:
                    _give_name(descriptor, name, gid)
                _give(descriptor, gid)
    finally:
        os.close(top)


def _give_name(folder: int, name: str, gid: int) -> None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode):
            # Something else may have its name by now: neither a link nor a pipe holds this up.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                _give(file, gid)
            finally:
                os.close(file)
        elif found.st_gid != gid:
            os.chown(name, -1, gid, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise


def _give(descriptor: int, gid: int) -> None:
    """Change what a descriptor is of, only where it must be: each change is a message to a file server."""
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    wanted = mode | (_FOLDER if stat.S_ISDIR(found.st_mode) else _FILE)
    if found.st_gid != gid:
        os.fchown(descriptor, -1, gid)
    if found.st_gid != gid or wanted != mode:
        # Also after the change of the group, which takes set-id bits away (chown(2)).
        os.fchmod(descriptor, wanted)


def set_mode(path: Path, mode: int, gid: int | None) -> None:
    """Give a file or folder that was just made its mode, and a group with the rights that Kubernetes adds for it.

    The group reads what the owner alone could; what is made in a folder is the group's, too.
    """
    if gid is not None:
        os.chown(path, -1, gid)
        mode |= _GROUP_PASSES if path.is_dir() else _GROUP_READS
    path.chmod(mode)
