"""The namespaces of a pod, and the process that holds them.

One user namespace for all containers: the job's user is root in it, and its subordinate ids are 1 to 65535. Beside it
the pod has namespaces of its own for mounts, IPC, its host name and processes. The network stays the job's.

The holder is process 1 of the PID namespace. It reaps orphans and waits at a pipe whose other end only the
supervisor has: however the supervisor ends, the holder then ends too, the kernel kills everything in its PID
namespace, and the pod's folder on the node is removed.
"""

from __future__ import annotations

import os
import pwd
import re
import select
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from isthmus.supervisor.runtime import linux
from isthmus.supervisor.runtime.processes import Place, StartError

_KINDS = {"user": linux.NEWUSER, "mnt": linux.NEWNS, "pid": linux.NEWPID, "ipc": linux.NEWIPC, "uts": linux.NEWUTS}
_OCTAL = re.compile(rb"\\([0-7]{3})")
# Ids above these have no meaning to images.
_MOST_IDS = 65535


@dataclass(frozen=True)
class PodNamespaces:
    """The namespaces of the holder.

    Attributes:
        pid: the holder.
        lifeline: the pipe's end whose closing ends the pod.
        many_ids: whether ids other than 0 exist in there.
        base: the pod's folder on the node's disk, 0700.
    """

    pid: int
    lifeline: int
    many_ids: bool
    base: Path

    def place(self) -> Place:
        """Open them all, to start Apptainer in."""
        return opened(self.pid)

    @property
    def files(self) -> Place:
        """Open only what matters to files."""
        return opened(self.pid, ("user", "mnt"))

    def seen(self, path: Path) -> Path:
        """Name a file of the pod's mounts as this process sees it."""
        return Path(f"/proc/{self.pid}/root{path}")

    def end(self) -> None:
        """Kill everything in the namespaces."""
        os.close(self.lifeline)
        with suppress(ProcessLookupError):
            # Files are gone before the supervisor is; the reaper may be the one to see it end.
            _wait_for_end(self.pid)


def opened(pid: int, kinds: tuple[str, ...] = tuple(_KINDS), *, root: bool = False) -> Place:
    """Open a process's namespaces in the order in which they can be joined.

    Raises:
        StartError: there is no such process any more.
    """
    found: list[tuple[int, int]] = []
    try:
        # One by one: those before one that fails are closed.
        found.extend((os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), _KINDS[kind]) for kind in kinds)
        return Place(tuple(found), os.open(f"/proc/{pid}/root", os.O_PATH) if root else None)
    except OSError as error:
        Place(tuple(found)).close()
        raise StartError(f"the namespaces of process {pid} cannot be opened: {error.strerror}") from error


def hold(base: Path) -> PodNamespaces:
    """Make a pod's namespaces; called before anything else runs in this process.

    Args:
        base: a folder for the pod alone, on a disk of this node; it goes when the holder ends.

    Raises:
        StartError: the kernel does not allow it.
    """
    linux.become_subreaper()
    reader, writer = os.pipe()
    go, let_go = os.pipe()
    lifeline, own_end = os.pipe()
    between = os.fork()
    if not between:
        os.close(own_end)
        os.close(let_go)
        _become_holder(base, writer, go, lifeline)
    for descriptor in (writer, go, lifeline):
        os.close(descriptor)
    _expect(reader, b"user")
    many_ids = _map_ids(between)
    os.write(let_go, b"+")
    os.close(let_go)
    # Two processes say these, whichever is first.
    pid = _expect(reader, b"pid", b"ready") + _expect(reader, b"pid", b"ready")
    os.waitpid(between, 0)
    os.close(reader)
    return PodNamespaces(int(pid), own_end, many_ids, base)


def _expect(reader: int, *words: bytes) -> bytes:
    """Read one line that begins with one of the words; return its rest."""
    # A byte at a time: the next line may already be there.
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(reader, 1)
        if not byte:
            break
        line += byte
    found, _, rest = line.strip().partition(b" ")
    if found not in words:
        raise StartError(f"the pod's namespaces cannot be made: {line.decode(errors='replace').strip()}")
    return rest


def _become_holder(base: Path, writer: int, go: int, lifeline: int) -> None:
    try:
        linux.unshare(linux.NEWUSER)
        os.write(writer, b"user\n")
        os.read(go, 1)
        linux.unshare(linux.NEWNS | linux.NEWPID | linux.NEWIPC | linux.NEWUTS)
        linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
        pid = os.fork()
        if pid:
            os.write(writer, b"pid %d\n" % pid)
            os._exit(0)
        os.setsid()
        linux.name_process("pause")
        linux.mount_proc()
        os.write(writer, b"ready\n")
        os.close(writer)
        _hold_on(base, lifeline)
    except OSError as error:
        os.write(writer, str(error).encode())
    os._exit(1)


def _hold_on(base: Path, lifeline: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    select.select([lifeline], [], [])
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    # What is shared would go from its other places, too, and be missed there.
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    for target in reversed(_mounted(base)):
        linux.unmount(target)
    # Only here are the files of subordinate ids one's own. Below a mount they are not the pod's.
    if not _mounted(base):
        shutil.rmtree(base, ignore_errors=True)
    os._exit(0)


def _mounted(base: Path) -> list[str]:
    """Return where something is mounted below a folder, in the order in which it was."""
    lines = Path("/proc/self/mounts").read_bytes().splitlines()
    # Blanks and the like are written as \040 (proc_pid_mounts(5)).
    targets = (_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[1]) for line in lines)
    return [os.fsdecode(target) for target in targets if target.startswith(os.fsencode(f"{base}/"))]


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _map_ids(pid: int) -> bool:
    """Write the id maps of the user namespace; return whether it has more than one id."""
    ranges = _subordinate("/etc/subuid"), _subordinate("/etc/subgid")
    tools = shutil.which("newuidmap"), shutil.which("newgidmap")
    own = os.getuid(), os.getgid()
    if all(ranges) and all(tools):
        for tool, mine, given in zip(tools, own, ranges, strict=False):
            start, count = given or (0, 0)
            argv = [str(tool), *(str(word) for word in (pid, 0, mine, 1, 1, start, min(count, _MOST_IDS)))]
            done = subprocess.run(argv, capture_output=True, text=True)  # noqa: S603
            if done.returncode:
                raise StartError(f"the pod's ids cannot be mapped: {done.stderr.strip()}")
        return True
    Path(f"/proc/{pid}/setgroups").write_text("deny")
    for kind, mine in zip(("uid", "gid"), own, strict=True):
        Path(f"/proc/{pid}/{kind}_map").write_text(f"0 {mine} 1")
    return False


def _subordinate(path: str) -> tuple[int, int] | None:
    """Return the first range of ids that belongs to this user: first, count (subuid(5))."""
    names = {str(os.getuid())}
    with suppress(KeyError):
        names.add(pwd.getpwuid(os.getuid()).pw_name)
    with suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            owner, *rest = line.split(":")
            if owner in names and len(rest) == 2:
                return int(rest[0]), int(rest[1])
    return None


def _wait_for_end(pid: int, timeout_ms: int = 20_000) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(timeout_ms)
    finally:
        os.close(descriptor)


def parent(pid: int) -> int:
    """Return a process's parent, 0 if it is gone."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        # The name may contain anything; the numbers follow its last parenthesis (proc_pid_stat(5)).
        return int(stat.rpartition(")")[2].split()[1])
    return 0


def members(mounts_of: int) -> list[int]:
    """Return the processes in the mount namespace that a descriptor is of, as far as they are one's own."""
    wanted = os.fstat(mounts_of).st_ino
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if os.stat(f"/proc/{name}/ns/mnt").st_ino == wanted:
                    found.append(int(name))
    return found
