"""The container that the ranks of one step share on a node.

In one user namespace ranks may read one another's memory (process_vm_readv(2)), so that messages within a node are
copied once; and Apptainer starts once for all. The first rank that comes binds a socket in the abstract namespace of
unix(7), which no other can bind then, and leaves a server behind it: that starts Apptainer around `hold`, gives each
rank the container's namespaces, root and variables, and ends it when the last rank has closed its connection.

The server is no child of a rank, and has nothing of a task's open. Slurm ends it with the step.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from isthmus.supervisor.runtime import linux, tree

# Where the container sees `hold`.
HELD = "/.isthmus/hold"
START_S = 120.0
# A name may be another user's, who cannot be kept from binding it.
_NAMES = 16
_WAIT_S, _AGAIN_S = 5.0, 0.01
_SEND_S = 10.0
_DESCRIPTORS = 3
_CREDENTIALS = struct.Struct("3i")
Places = Sequence[tuple[int, int]]


class ContainerError(Exception):
    """There is no container; the message says why."""


@dataclass(frozen=True)
class Entry:
    """What a rank enters.

    Attributes:
        connection: as long as it is open, the container stays.
        user: descriptor of the user namespace.
        mounts: descriptor of the mount namespace.
        root: descriptor of the root.
        inside: the variables of the container, which Apptainer made from those of one rank.
        before: that rank's own.
    """

    connection: socket.socket
    user: int
    mounts: int
    root: int
    inside: Mapping[str, str]
    before: Mapping[str, str]

    def environment(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return a rank's variables: the container's, and of its own those that its first rank has otherwise."""
        found = {**self.inside, **{name: value for name, value in own.items() if self.before.get(name) != value}}
        gone = [name for name in self.before if name not in own and found.get(name) == self.before[name]]
        return {name: value for name, value in found.items() if name not in gone}


def enter(step: str, held: list[str], places: Places) -> Entry:
    """Return the node's container of a step, started unless it is there.

    Args:
        step: names the step, on this node.
        held: Apptainer's words, which end with `HELD`.
        places: the pod's namespaces, as (descriptor, kind); none where the node's are the rank's.

    Raises:
        ContainerError: Apptainer did not start it, or somebody else is in the way.
        OSError: there is no process or descriptor to be had.
    """
    number, since_s = 0, time.monotonic()
    while number < _NAMES:
        name = f"\0isthmus-ranks-{os.getuid()}-{step}-{number}"
        if (listening := _bound(name)) is not None:
            _leave_server(listening, held, places)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(ConnectionRefusedError):
            connection.connect(name)
            since_s = time.monotonic()
            if _uid(connection) != os.getuid():
                number += 1
            elif (entry := _received(connection)) is not None:
                return entry
        connection.close()
        # It does not listen yet, or the last rank has just left it.
        if time.monotonic() - since_s > _WAIT_S:
            raise ContainerError("the container that ranks of this node share does not answer; start the pod again")
        time.sleep(_AGAIN_S)
    raise ContainerError(
        f"another user has all {_NAMES} names of its socket; use driver private, or ask an administrator"
    )


def _bound(name: str) -> socket.socket | None:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(name)
    except OSError as error:
        made.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return made


def _uid(connection: socket.socket) -> int:
    option = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(option)[1])


def _received(connection: socket.socket) -> Entry | None:
    """Return what the server says; None when it has just ended.

    Raises:
        ContainerError: it has no container.
    """
    try:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, _DESCRIPTORS)
        while part := connection.recv(1 << 16):
            message += part
    except ConnectionError:
        return None
    if not message:
        return None
    document = json.loads(message)
    if why := document.get("error"):
        raise ContainerError(why)
    user, mounts, root = descriptors
    return Entry(connection, user, mounts, root, document["inside"], document["before"])


def _leave_server(listening: socket.socket, held: list[str], places: Places) -> None:
    between = os.fork()
    if not between:
        try:
            if not os.fork():
                listening.listen(socket.SOMAXCONN)
                _detach(listening.fileno(), *(descriptor for descriptor, _ in places))
                _Server(listening, held, places).run()
        finally:
            os._exit(0)
    listening.close()
    os.waitpid(between, 0)


def _detach(*kept: int) -> None:
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    linux.close_all([0, 1, 2, *kept])
    linux.become_subreaper()


class _Server:
    """Starts the container, hands it out and ends it."""

    def __init__(self, listening: socket.socket, held: list[str], places: Places) -> None:
        self._listening, self._held, self._places = listening, held, places
        self._before = dict(os.environ)
        self._ranks: dict[int, socket.socket] = {}
        self._all: list[int] = []

    def run(self) -> None:
        """Serve until the last rank has gone."""
        descriptors: list[int] = []
        try:
            holder = self._start()
            descriptors = [
                os.open(f"/proc/{holder}/{name}", flags)
                for name, flags in (("ns/user", os.O_RDONLY), ("ns/mnt", os.O_RDONLY), ("root", os.O_PATH))
            ]
            raw = os.fsdecode(Path(f"/proc/{holder}/environ").read_bytes()).split("\0")
            inside = dict(line.split("=", 1) for line in raw if "=" in line)
            answer: dict[str, object] = {"inside": inside, "before": self._before}
        except (ContainerError, OSError) as error:
            answer = {"error": str(error)}
        try:
            self._serve(json.dumps(answer).encode(), descriptors)
        finally:
            self._end()

    def _start(self) -> int:
        """Return the process whose namespaces are the container."""
        reader, writer = os.pipe()
        complaint = os.memfd_create("apptainer")
        apptainer = self._fork(writer, complaint)
        os.close(writer)
        self._all = [apptainer]
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        ready = os.read(reader, 32) if poll.poll(START_S * 1000) else b""
        holder = tree.running(apptainer, HELD) if ready.strip().isdigit() else None
        self._all = [*tree.below(apptainer)]
        if holder is None:
            said = os.pread(complaint, 1 << 16, 0).decode(errors="replace").strip().splitlines()
            raise ContainerError(said[-1].removeprefix("FATAL:").strip() if said else "Apptainer did not answer")
        os.close(reader)
        os.close(complaint)
        return holder

    def _fork(self, output: int, complaint: int) -> int:
        """Start Apptainer, in the pod's namespaces, as the user; return its process."""
        pids, pid_writer = os.pipe()
        uid, gid = os.getuid(), os.getgid()
        between = os.fork()
        if between:
            os.close(pid_writer)
            os.waitpid(between, 0)
            text = os.read(pids, 32)
            os.close(pids)
            if not text:
                raise ContainerError(os.pread(complaint, 1 << 12, 0).decode(errors="replace") or "no process")
            return int(text)
        try:
            for descriptor, kind in self._places:
                linux.setns(descriptor, kind)
            pid = os.fork()
            if pid:
                os.write(pid_writer, b"%d" % pid)
                os._exit(0)
            if self._places:
                as_user(uid, gid)
            os.dup2(output, 1)
            os.dup2(complaint, 2)
            linux.close_all([0, 1, 2])
            os.chdir("/")
            os.execvp(self._held[0], self._held)  # noqa: S606
        except OSError as error:
            os.write(complaint, f"{error}\n".encode())
        os._exit(1)

    def _serve(self, answer: bytes, descriptors: list[int]) -> None:
        poll = select.poll()
        poll.register(self._listening, select.POLLIN)
        has_served = False
        while self._ranks or not has_served:
            found = poll.poll(None if self._ranks else _WAIT_S * 1000)
            if not found:
                # The rank that left this behind has died.
                return
            for descriptor, _ in found:
                if descriptor == self._listening.fileno():
                    self._accept(poll, answer, descriptors)
                    has_served = has_served or bool(self._ranks)
                else:
                    poll.unregister(descriptor)
                    self._ranks.pop(descriptor).close()

    def _accept(self, poll: select.poll, answer: bytes, descriptors: list[int]) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(_SEND_S)
        if _uid(connection) != os.getuid():
            connection.close()
            return
        with suppress(OSError):
            sent = socket.send_fds(connection, [answer], descriptors)
            connection.sendall(answer[sent:])
            connection.shutdown(socket.SHUT_WR)
        self._ranks[connection.fileno()] = connection
        poll.register(connection, select.POLLIN)

    def _end(self) -> None:
        self._listening.close()
        for pid in self._all:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def as_user(uid: int, gid: int) -> None:
    """Be this user in a user namespace of one's own, with no right over that of before.

    Raises:
        OSError: the kernel does not allow it.
    """
    linux.unshare(linux.NEWUSER)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} 0 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} 0 1", encoding="ascii")
