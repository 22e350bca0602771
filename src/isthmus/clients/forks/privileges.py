"""Giving root's rights up for good, in a process that was forked and executes nothing.

The kernel clears capabilities with the last user id 0 (capabilities(7)), but neither the bounding set nor, by itself,
the way back through a program with a file capability; and a forked process still has all that its parent had open.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
from collections.abc import Iterable
from itertools import count

_CLONE_NEWNET = 0x40000000  # sched.h
# linux/prctl.h
_PDEATHSIG, _DUMPABLE, _CAPBSET_READ, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 4, 23, 24, 38
_AMBIENT, _AMBIENT_CLEAR_ALL = 47, 4
_LIBC = ctypes.CDLL(None, use_errno=True)
_ENDED = 1
_STATUS_BYTES = 1 << 14
_SETS = (b"CapInh:", b"CapPrm:", b"CapEff:", b"CapBnd:", b"CapAmb:")


def close_all_but(kept: int) -> int:
    """Close every descriptor but one, which is 3 then; 0, 1 and 2 are /dev/null.

    Of a process whose limit of descriptors was not lowered: what is beyond it stays.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    # Whatever has these numbers now; what is kept must not be among what is overwritten before it is copied.
    copy = os.dup(kept)
    while copy <= 3:
        copy = os.dup(copy)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.dup2(copy, 3, inheritable=False)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return 3


def end_with_parent(parent: int = 0) -> None:
    """Have the kernel kill this process when its parent ends; a change of user undoes it (prctl(2)).

    Args:
        parent: its process id; one that has ended already ends this process, too.
    """
    _prctl(_PDEATHSIG, int(signal.SIGKILL))
    if parent and os.getppid() != parent:
        os._exit(_ENDED)


def enter_network(namespace: int) -> None:
    """Join the network namespace of a descriptor.

    Raises:
        OSError: it is none, or the right to do so lacks.
    """
    _checked("setns", _LIBC.setns(namespace, _CLONE_NEWNET))


def become(uid: int, gid: int, groups: Iterable[int], parent: int) -> None:
    """Become a user for good: no right of root's, nor a way to one, is left, and no other process looks in.

    Not even the user's own do (ptrace(2), "dumpable"): what was forked may hold more than the user may see.

    Args:
        uid: the user, not root.
        gid: the user's group.
        groups: all of the user's.
        parent: with whose end this process ends, too.

    Raises:
        OSError: it could not; the caller must end.
    """
    if uid <= 0:
        raise OSError(errno.EINVAL, "root is no user to become")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _drop_bounding_set()
    _prctl(_AMBIENT, _AMBIENT_CLEAR_ALL)
    os.setgroups(list(groups))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _prctl(_NO_NEW_PRIVS, 1)
    _prctl(_DUMPABLE, 0)
    end_with_parent(parent)
    _check(uid, gid)


def _check(uid: int, gid: int) -> None:
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or any(capabilities()):
        raise OSError(errno.EPERM, "rights of root are left")


def capabilities(process: str = "self") -> list[int]:
    """Return the five sets of capabilities of a process (proc_pid_status(5))."""
    descriptor = os.open(f"/proc/{process}/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        words = os.read(descriptor, _STATUS_BYTES).split()
    finally:
        os.close(descriptor)
    return [int(words[words.index(name) + 1], 16) for name in _SETS]


def _drop_bounding_set() -> None:
    for number in count():
        try:
            is_there = _prctl(_CAPBSET_READ, number)
        except OSError:
            # The kernel knows no more of them.
            return
        if is_there:
            _prctl(_CAPBSET_DROP, number)


def _prctl(option: int, argument: int) -> int:
    return _checked(f"prctl {option}", _LIBC.prctl(option, *(ctypes.c_ulong(each) for each in (argument, 0, 0, 0))))


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return int(result)
