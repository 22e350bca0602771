"""Named network namespaces: files in /run/netns, as ip-netns(8) has them, each a bind mount that keeps one alive.

A thread makes or enters a namespace, leaves an open netlink socket there, and ends; no other thread of the process
ever changes its namespace, and no process is started. The process must share its mounts with the host (no
PrivateTmp=, no ProtectSystem= in a systemd unit): else nobody but itself sees the namespaces.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

from isthmus.clients.netlink.wire import AlreadyThereError, NotThereError, Wire, failure

RUN = Path("/run/netns")
# Fakeroot users may ping; ports below 1024 are the pod's own.
_SYSCTLS = {
    "ipv4/ping_group_range": "0 2147483647",
    "ipv4/ip_unprivileged_port_start": "0",
}
NO_IPV6 = {"ipv6/conf/all/disable_ipv6": "1"}
# A pod without IPv6.
POD_SYSCTLS = NO_IPV6 | _SYSCTLS
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED, _MNT_DETACH = 0x1000, 0x4000, 0x100000, 0x2
_OWN = Path("/proc/thread-self/ns/net")
_LIBC = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def create(path: Path, sysctls: Mapping[str, str]) -> Wire:
    """Make a namespace with a name and settings; return a socket in it.

    Args:
        path: its file; must not exist.
        sysctls: below /proc/sys/net, of the new namespace; those the kernel does not have are left out.

    Raises:
        NetlinkError: it could not be made.
    """

    def work() -> Wire:
        _call("make a network namespace", _LIBC.unshare(_CLONE_NEWNET))
        _mount(f"name {path.name}", _OWN, path, _MS_BIND)
        for name, value in sysctls.items():
            sysctl(name, value)
        return Wire()

    _shared(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0))
    except FileExistsError as error:
        raise AlreadyThereError(f"make {path}", errno.EEXIST) from error
    return _in_thread(work)


def has_ipv6() -> bool:
    """Return whether the kernel has IPv6 at all."""
    return Path("/proc/sys/net/ipv6").is_dir()


def ipv6_sysctls(interface: str) -> dict[str, str]:
    """Return the settings by which an interface has the IPv6 addresses that it is given, and no others.

    It takes nothing from routers, and makes no address of its own, not even one for the link.
    """
    here = f"ipv6/conf/{interface}"
    return {
        f"{here}/accept_ra": "0",
        f"{here}/autoconf": "0",
        f"{here}/accept_redirects": "0",
        f"{here}/accept_dad": "0",
        f"{here}/forwarding": "0",
        f"{here}/addr_gen_mode": "1",
        f"{here}/disable_ipv6": "0",
    }


def pod_sysctls(interface: str, ipv6: bool) -> dict[str, str]:
    """Return the settings of a pod's namespace, and of its interface where that is there already."""
    if not ipv6:
        return POD_SYSCTLS
    # Of all at last: until then it has no IPv6 that others could speak to.
    several = (interface, "default", "all")
    return _SYSCTLS | {name: value for each in several for name, value in ipv6_sysctls(each).items()}


def enter(path: Path, sysctls: Sequence[Mapping[str, str]] = ()) -> Wire:
    """Return a socket in a namespace.

    Args:
        path: its file.
        sysctls: settings to change there, one after another.

    Raises:
        NotThereError: there is none of that name.
    """

    def work() -> Wire:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise NotThereError(f"open {path}", errno.ENOENT) from error
        try:
            _call(f"enter {path}", _LIBC.setns(handle, _CLONE_NEWNET))
        finally:
            os.close(handle)
        for each in sysctls:
            for name, value in each.items():
                sysctl(name, value)
        return Wire()

    return _in_thread(work)


def remove(path: Path) -> None:
    """Take a namespace's name away; the kernel ends it when its last process has left. One that is gone is fine."""
    if _LIBC.umount2(os.fsencode(path), _MNT_DETACH) and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        raise failure(f"unmount {path}", ctypes.get_errno())
    path.unlink(missing_ok=True)


def exists(path: Path) -> bool:
    """Return whether a file is a namespace, and not just the place where one was to be mounted."""
    with suppress(FileNotFoundError):
        return path.stat().st_dev == _OWN.stat().st_dev
    return False


def names(folder: Path) -> frozenset[str]:
    """Return the names of all files there, whole namespaces or not."""
    with suppress(FileNotFoundError):
        return frozenset(os.listdir(folder))
    return frozenset()


def sysctl(name: str, value: str) -> None:
    """Set a kernel parameter below /proc/sys/net of this thread's namespace; one the kernel lacks is left out."""
    with suppress(FileNotFoundError), open(f"/proc/sys/net/{name}", "w") as file:
        file.write(value)


def _in_thread(work: Callable[[], T]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _shared(folder: Path) -> None:
    """Make mounts in the folder appear in every mount namespace, as ip-netns does: else removed ones live on there."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if _LIBC.mount(b"", os.fsencode(folder), b"none", _MS_SHARED | _MS_REC, None) == 0:
        return
    _mount(f"share {folder}", folder, folder, _MS_BIND | _MS_REC)
    _mount(f"share {folder}", Path(), folder, _MS_SHARED | _MS_REC)


def _mount(what: str, source: Path, target: Path, flags: int) -> None:
    _call(what, _LIBC.mount(os.fsencode(source), os.fsencode(target), b"none", flags, None))


def _call(what: str, result: int) -> None:
    if result:
        raise failure(what, ctypes.get_errno())
