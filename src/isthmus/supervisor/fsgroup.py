"""fsGroup of volumes that others made: the group of all their files, as Kubernetes' SetVolumeOwnership gives it.

Containers of other pods may change the volume meanwhile. So each name is opened as what it is itself (O_PATH,
O_NOFOLLOW), and what was opened is changed by its descriptor: a link that takes a file's place leads nowhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

# The group reads and writes, passes folders, and has what is made in them.
_FILE, _FOLDER = 0o660, 0o2770


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
    top = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(top)
        if is_kept and found.st_gid == gid and found.st_mode & _FOLDER == _FOLDER:
            return
        for _, _, names, descriptor in os.fwalk(".", topdown=False, dir_fd=top):
            if os.fstat(descriptor).st_dev == found.st_dev:
                for name in names:
                    _give_name(descriptor, name, gid)
                _give(descriptor, gid)
        _give(top, gid)
    finally:
        os.close(top)


def _give_name(folder: int, name: str, gid: int) -> None:
    try:
        file = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISLNK(os.fstat(file).st_mode):
            _give(file, gid)
    finally:
        os.close(file)


def _give(descriptor: int, gid: int) -> None:
    """Change what a descriptor is of, only where it must be: each change is a message to a file server."""
    found, path = os.fstat(descriptor), _itself(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    wanted = mode | (_FOLDER if stat.S_ISDIR(found.st_mode) else _FILE)
    if found.st_gid != gid:
        os.chown(path, -1, gid)
    if found.st_gid != gid or wanted != mode:
        # Also after the change of the group, which takes set-id bits away (chown(2)).
        os.chmod(path, wanted)


def _itself(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
