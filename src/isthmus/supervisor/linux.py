"""The few system calls that Python >= 3.9 lacks, by way of libc; a failure is an OSError that says what was tried."""

from __future__ import annotations

import ctypes
import os
import signal
from itertools import count

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000  # sched.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000  # sys/mount.h
# linux/prctl.h
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 15, 23, 24, 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h

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


_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move this process (or, for NEWPID, its children) to new namespaces."""
    _call("unshare", flags)


def setns(descriptor: int, kind: int) -> None:
    """Join a namespace."""
    _call("setns", descriptor, kind)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system."""
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())


def mount_proc() -> None:
    """Mount a /proc of this process's own process namespace."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


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
