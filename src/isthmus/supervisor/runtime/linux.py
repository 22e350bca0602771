"""The few system calls that Python lacks, by way of libc; a failure is an OSError that says what was tried."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Iterable
from itertools import count, pairwise

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000  # sched.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000  # sys/mount.h
MS_SLAVE, MS_SHARED = 0x80000, 0x100000
# mount_setattr(2) and statvfs(3) have the same bits for these.
MOUNT_ATTRIBUTES = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
_CLONE_FILES = 0x00000400  # sched.h
# linux/prctl.h
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 15, 23, 24, 36
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h
# Of these the C library of older distributions has no function; the numbers are the same on all machines.
_OPEN_TREE, _MOVE_MOUNT, _CLOSE_RANGE, _OPENAT2, _MOUNT_SETATTR = 428, 429, 436, 437, 442
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _AT_RECURSIVE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 0x1000, 0x8000, 4  # linux/mount.h
_MOVE_MOUNT_T_EMPTY_PATH = 0x40
_AT_FDCWD = -100
# linux/openat2.h: no /proc/PID/fd and the like; no symbolic link; never above the folder; the folder is the root
NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10

# In order: their numbers are their places (linux/capability.h).
CAPABILITIES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP
MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
""".split()  # noqa: SIM905  forty quoted words are no better


class _Filter(ctypes.Structure):
    """struct sock_fprog (linux/filter.h)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class _OpenHow(ctypes.Structure):
    """struct open_how (linux/openat2.h)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _MountAttr(ctypes.Structure):
    """struct mount_attr (linux/mount.h)."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


def _call(name: str, *arguments: object) -> int:
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process (or, for NEWPID, its children) to new namespaces."""
    _call("unshare", flags)


def own_descriptors(*kept: int) -> None:
    """Give the calling thread a table of descriptors of its own, with only those that are kept."""
    unshare(_CLONE_FILES)
    close_all(kept)


def setns(descriptor: int, kind: int) -> None:
    """Join a namespace."""
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system."""
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def mount_proc() -> None:
    """Mount a /proc of this process's own process namespace."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path below a folder's descriptor, by the given rules of resolution; the kernel has it since 5.6."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _number("openat2", _OPENAT2, ctypes.c_int(folder), os.fsencode(path), ctypes.byref(how), size)


def bind(descriptor: int, target: str) -> None:
    """Mount what a descriptor is of, with all mounted below it, whatever its path now leads to."""
    tree = _copied(descriptor, b"", _AT_EMPTY_PATH)
    try:
        to = (ctypes.c_int(_AT_FDCWD), os.fsencode(target))
        _number("move_mount", _MOVE_MOUNT, ctypes.c_int(tree), b"", *to, ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH))
    finally:
        os.close(tree)


def copied(path: str) -> int:
    """Return a descriptor of a copy of what is mounted at a path, with all mounted below it; it is nowhere yet."""
    return _copied(_AT_FDCWD, os.fsencode(path), 0)


def _copied(folder: int, path: bytes, flags: int) -> int:
    flags |= _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    return _number("open_tree", _OPEN_TREE, ctypes.c_int(folder), path, ctypes.c_uint(flags))


def lay(copy: int, target: int) -> None:
    """Mount a copy on what a descriptor (O_PATH) is of."""
    flags = ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH)
    _number("move_mount", _MOVE_MOUNT, ctypes.c_int(copy), b"", ctypes.c_int(target), b"", flags)


def set_mount(descriptor: int, *, attributes: int = 0, propagation: int = 0, whole: bool = False) -> None:
    """Set what a mount is, or with `whole` all that is mounted below it; the kernel has this since 5.12."""
    wanted = _MountAttr(attributes, 0, propagation, 0)
    flags = ctypes.c_uint(_AT_EMPTY_PATH | (_AT_RECURSIVE if whole else 0))
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    _number("mount_setattr", _MOUNT_SETATTR, ctypes.c_int(descriptor), b"", flags, ctypes.byref(wanted), size)


def close_all(kept: Iterable[int]) -> None:
    """Close every descriptor of this process but these."""
    ends = [-1, *sorted(set(kept)), 1 << 31]
    for before, after in pairwise(ends):
        if after - before > 1:
            _close_range(before + 1, after - 1)


def _close_range(first: int, last: int) -> None:
    try:
        _number("close_range", _CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(last), ctypes.c_uint(0))
    except OSError as error:
        if error.errno != errno.ENOSYS:  # Linux 5.9
            raise
        there = map(int, os.listdir("/proc/self/fd"))
        for descriptor in sorted(each for each in there if first <= each <= last):
            os.closerange(descriptor, descriptor + 1)


def _number(name: str, number: int, *arguments: object) -> int:
    result = int(_syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        wrong = ctypes.get_errno()
        raise OSError(wrong, f"{name}: {os.strerror(wrong)}")
    return result


def unmount(target: str) -> None:
    """Take a mount away, now or when nobody uses it any more."""
    _call("umount2", target.encode(), 2)


def sethostname(name: str) -> None:
    """Name this UTS namespace."""
    _call("sethostname", name.encode(), len(name.encode()))


def become_subreaper() -> None:
    """Become the parent of descendants whose own parent ends."""
    _call("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends; a change of user or namespace undoes it."""
    _call("prctl", _PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def hide() -> None:
    """Keep other processes of any uid out of this one's memory and /proc entry until it executes one.

    Also those that have CAP_SYS_PTRACE in the namespaces it joins: its memory belongs to where it was executed.
    """
    _call("prctl", _PR_SET_DUMPABLE, 0, 0, 0, 0)


def no_new_privileges() -> None:
    """Let no execve(2) give this process, or what descends from it, more rights than it has."""
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def filter_calls(instructions: bytes) -> None:
    """Have the kernel put this process's system calls through a filter of 8-byte instructions, for good."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Filter(len(instructions) // 8, ctypes.addressof(code))
    _call("prctl", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def name_process(name: str) -> None:
    """Set what ps shows."""
    _call("prctl", _PR_SET_NAME, name.encode(), 0, 0, 0)


def bound_capabilities(kept: set[str]) -> None:
    """Drop every other capability for good, also of what is executed later."""
    for number in count():
        try:
            _call("prctl", _PR_CAPBSET_READ, number, 0, 0, 0)
        except OSError:  # the kernel knows no more of them
            break
        if number >= len(CAPABILITIES) or CAPABILITIES[number] not in kept:
            _call("prctl", _PR_CAPBSET_DROP, number, 0, 0, 0)
    _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def limit_capabilities(kept: set[str]) -> None:
    """Keep only these in the permitted and effective set; none are inheritable."""
    mask = sum(1 << number for number, name in enumerate(CAPABILITIES) if name in kept)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _call("capset", header, sets)
