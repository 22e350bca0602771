"""An MPI rank on the pod's own node: `python -I -m isthmus.supervisor.runtime.rank SOCKET`, started by srun.

The supervisor answers with a command and the pod's namespaces of users, mounts and processes. The rank joins them, so
that it sees the pod's volumes; there it is root. Then it makes a namespace of users below, in which it is the user
again, with no right over the pod's mounts: PMIx compares ids, and ranks of all nodes are to have the same.

This process stays outside and ends as the rank ends. Slurm signals every process of a task, so it passes nothing on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

from isthmus.supervisor.runtime import linux

_DESCRIPTORS = 3
_HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


def main(path: str) -> int:
    """Become the rank; return its exit code, or 1 with a reason on stderr."""
    try:
        argv, places = ask(path)
        pid = join(argv, places)
    except (OSError, ValueError, KeyError) as error:
        print(f"the rank cannot join its pod: {error}", file=sys.stderr)
        return 1
    for heard in _HEARD:
        signal.signal(heard, signal.SIG_IGN)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _end_by(number: int) -> None:
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def ask(path: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return what to execute, and the namespaces to join first, as (descriptor, kind)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, _DESCRIPTORS)
        while part := connection.recv(1 << 16):
            message += part
    document = json.loads(message)
    return [str(word) for word in document["argv"]], list(zip(descriptors, map(int, document["kinds"]), strict=True))


def join(argv: list[str], places: list[tuple[int, int]]) -> int:
    """Start the command in other namespaces, as the user; return its process.

    What this process inherited stays open: PMI-2 is such a descriptor.
    """
    uid, gid = os.getuid(), os.getgid()
    for descriptor, kind in places:
        linux.setns(descriptor, kind)
        os.close(descriptor)
    pid = os.fork()
    if pid:
        return pid
    try:
        linux.unshare(linux.NEWUSER)
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} 0 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} 0 1", encoding="ascii")
        linux.die_with_parent()
        # Python ignores them, and who is executed would.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir("/")
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        print(f"the rank cannot be started: {error}", file=sys.stderr)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
