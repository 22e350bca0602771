"""An MPI rank: `python -I -m isthmus.supervisor.runtime.rank SOCKET [DOCUMENT]`, started by srun.

On the pod's own node the supervisor answers at the socket with a document and the pod's namespaces of users, mounts and
processes. Elsewhere the document is the last word, and the namespaces are the node's. It is JSON:

    argv     Apptainer's words with the program, for a rank that is alone on its node
    held     Apptainer's words for the container that several ranks of a node share (`rank_container`)
    program  the program's words
    folder   where it starts

On the pod's node a rank sees the pod's volumes. In the pod's namespaces it would be root, so it is in a namespace of
users below, in which it is the user again, with no right over the pod's mounts: PMIx compares ids, and ranks of all
nodes are to have the same.

This process stays outside and ends as the rank ends. Slurm signals every process of a task, so it passes nothing on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from isthmus.supervisor.runtime import linux, rank_container
from isthmus.supervisor.runtime.rank_container import ContainerError, Entry

_DESCRIPTORS = 3
# As Apptainer's own for a program that cannot be started.
_NOT_STARTED = 255
_HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


def main(path: str, text: str = "") -> int:
    """Become the rank; return its exit code, or 1 with a reason on stderr."""
    try:
        document, places = (json.loads(text), list[tuple[int, int]]()) if text else ask(path)
        # As long as the connection is open the container stays.
        pid, _connection = (join if is_alone(os.environ) else enter)(document, places)
    except (OSError, ValueError, KeyError, ContainerError) as error:
        print(f"the rank cannot join its pod: {error}", file=sys.stderr)
        return 1
    for heard in _HEARD:
        signal.signal(heard, signal.SIG_IGN)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def is_alone(variables: Mapping[str, str]) -> bool:
    """Return whether no node of the step has two ranks, by Slurm's word: `1`, or `1(x4)` for four nodes."""
    counts = variables.get("SLURM_STEP_TASKS_PER_NODE", "1").split(",")
    return all(count.partition("(")[0] == "1" for count in counts)


def _end_by(number: int) -> None:
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def ask(path: str) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return the document, and the namespaces to join first, as (descriptor, kind)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, _DESCRIPTORS)
        while part := connection.recv(1 << 16):
            message += part
    document = json.loads(message)
    return document, list(zip(descriptors, map(int, document["kinds"]), strict=True))


def join(document: Mapping[str, Any], places: list[tuple[int, int]]) -> tuple[int, None]:
    """Start Apptainer with the program, in other namespaces, as the user; return its process.

    What this process inherited stays open: PMI-2 is such a descriptor.
    """
    argv = [str(word) for word in document["argv"]]
    uid, gid = os.getuid(), os.getgid()
    for descriptor, kind in places:
        linux.setns(descriptor, kind)
        os.close(descriptor)

    def become() -> NoReturn:
        if places:
            rank_container.as_user(uid, gid)
        linux.die_with_parent()
        os.chdir("/")
        os.execvp(argv[0], argv)  # noqa: S606

    return _started(become), None


def enter(document: Mapping[str, Any], places: list[tuple[int, int]]) -> tuple[int, socket.socket]:
    """Start the program in the container that ranks of this node share; return its process, and what keeps that."""
    step = [os.environ.get(name, "") for name in ("SLURMD_NODENAME", "SLURM_JOB_ID", "SLURM_STEP_ID")]
    entry = rank_container.enter("-".join(step), document["held"], places)
    for descriptor, kind in places:
        # The mounts are the container's.
        if kind != linux.NEWNS:
            linux.setns(descriptor, kind)
        os.close(descriptor)
    for descriptor, kind in ((entry.user, linux.NEWUSER), (entry.mounts, linux.NEWNS)):
        linux.setns(descriptor, kind)
        os.close(descriptor)
    return _started(lambda: _execute(document, entry)), entry.connection


def _execute(document: Mapping[str, Any], entry: Entry) -> NoReturn:
    os.fchdir(entry.root)
    os.close(entry.root)
    os.chroot(".")
    linux.bound_capabilities(set())
    linux.limit_capabilities(set())
    linux.no_new_privileges()
    linux.die_with_parent()
    argv = [str(word) for word in document["program"]]
    os.chdir(document["folder"] or "/")
    os.execvpe(argv[0], argv, entry.environment(os.environ))  # noqa: S606


def _started(become: Callable[[], NoReturn]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        # Python ignores them, and who is executed would.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        become()
    except OSError as error:
        print(f"the rank cannot be started: {error}", file=sys.stderr)
    os._exit(_NOT_STARTED)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
