"""Locks on a home that may have none: Lustre without -o flock, NFS without its lock service."""

from __future__ import annotations

import errno
import fcntl

# flock(2) there, and on other file systems without.
_NONE = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


def take(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock a file; return whether it is locked now, None where there are no locks.

    Args:
        descriptor: of the file.
        wait: for another that has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NONE:
            return None
        raise
    return True
