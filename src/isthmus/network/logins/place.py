"""A login pod's folder below /run, which root alone can look into: what the pod is made of, and who is in it.

netns, resolv.conf   links to its network
ports                that its kernel chooses from, as /proc/sys/net/ipv4/ip_local_port_range has them
job                  its id in etcd
init                 process id of its first process, written by that one's program
sessions/<pid>       of each process that watches over a connection, holding when it began (proc_pid_stat(5), starttime)

Process ids come again; so a process is held by a descriptor (pidfd_open(2)) from the moment it was found to be the one.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

PROC = Path("/proc")
# Of what follows a process's name in proc_pid_stat(5): field 22, counted from 3.
_STARTTIME = 19


class Held:
    """A process, held by a descriptor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return not poll.poll(0)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Let it go."""
        os.close(self._descriptor)


def ended(several: Iterable[Held]) -> frozenset[Held]:
    """Return those of several processes that have ended, or were let go of; one system call asks for all."""
    poll, known = select.poll(), {}
    for each in several:
        known[each.fileno()] = each
        poll.register(each, select.POLLIN)
    return frozenset(known[descriptor] for descriptor, _ in poll.poll(0))


class Place:
    """The folder of one user's pod."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, job: int, netns: str, resolv_conf: str, ports: tuple[int, int]) -> None:
        """Write what the pod is made of; what an earlier one left is gone."""
        self.remove()
        self.folder.mkdir(mode=0o700, parents=True)
        (self.folder / "sessions").mkdir()
        (self.folder / "netns").symlink_to(netns)
        (self.folder / "resolv.conf").symlink_to(resolv_conf)
        (self.folder / "ports").write_text("{} {}\n".format(*ports), encoding="ascii")
        (self.folder / "job").write_text(f"{job}\n", encoding="ascii")

    def job(self) -> int:
        """Return the pod's id in etcd, 0 without one."""
        return _number(self.folder / "job")

    def init(self) -> Held | None:
        """Return the pod's first process; None unless it is there, in the pod's network."""
        with suppress(OSError):
            held = Held(_number(self.folder / "init"))
            with suppress(OSError):
                its, wanted = (PROC / str(held.pid) / "ns/net").stat(), (self.folder / "netns").stat()
                if (its.st_dev, its.st_ino) == (wanted.st_dev, wanted.st_ino):
                    return held
            held.close()
        return None

    def remember(self, pid: int) -> Held:
        """Count a process as a session.

        Raises:
            OSError: it has ended.
        """
        held = Held(pid)
        (self.folder / "sessions" / str(pid)).write_text(_begun(pid), encoding="ascii")
        return held

    def forget(self, pid: int) -> None:
        """Do not count it any more."""
        (self.folder / "sessions" / str(pid)).unlink(missing_ok=True)

    def sessions(self) -> dict[int, Held]:
        """Return the sessions that an earlier daemon has counted and that still live."""
        found = {}
        with suppress(FileNotFoundError):
            for file in (self.folder / "sessions").iterdir():
                with suppress(OSError):
                    held = Held(int(file.name))
                    if _begun(held.pid) == file.read_text(encoding="ascii"):
                        found[held.pid] = held
                    else:
                        held.close()
        return found

    def remove(self) -> None:
        """Remove the folder."""
        if self.folder.exists():
            rmtree(self.folder)


def _begun(pid: int) -> str:
    return (
        (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[_STARTTIME]
    )


def _number(file: Path) -> int:
    with suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii"))
    return 0
