"""The remote side of a Slurm step that limits a container's memory: `... step <socket>`, started by srun.

What this process starts is in the step's control group, so the step's memory is the container's. The supervisor
hands it programs, the container's own and those of `kubectl exec`, probes and hooks, each with a number and all
descriptors it needs: streams, namespaces, root. It answers {"pid"} or {"error"}, then {"status"} as wait(2) gives it,
and stays until the supervisor has read the group's figures and closes. If the supervisor goes, so do the programs.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from isthmus.supervisor.runtime import linux
from isthmus.supervisor.runtime.processes import Identity, Place, Program, StartError, reason, start

STREAMS = 3
_MESSAGE_BYTES = 4 << 20
_MOST_DESCRIPTORS = 16


def packed(number: int, program: Program, place: Place) -> bytes:
    """Return what the supervisor sends, beside the descriptors: streams, namespaces, root."""
    identity = program.identity or Identity()
    document = {
        "number": number,
        "argv": list(program.argv),
        "env": dict(program.env),
        "cwd": program.cwd,
        "terminal": program.terminal,
        "identity": [identity.uid, identity.gid, list(identity.groups), sorted(identity.capabilities)],
        "escalates": identity.escalates,
        "calls": base64.b64encode(identity.calls).decode(),
        "kinds": [kind for _, kind in place.namespaces],
    }
    return json.dumps(document).encode() + b"\n"


def unpacked(line: bytes, descriptors: list[int]) -> tuple[int, Program, Place, tuple[int, int, int]]:
    """Read what `packed` has made."""
    document = json.loads(line)
    uid, gid, groups, capabilities = document["identity"]
    calls = base64.b64decode(document["calls"])
    identity = Identity(uid, gid, tuple(groups), frozenset(capabilities), document["escalates"], calls)
    stdin, stdout, stderr, *spaces, root = descriptors
    place = Place(tuple(zip(spaces, document["kinds"], strict=True)), root)
    program = Program(document["argv"], document["env"], document["cwd"], identity, document["terminal"])
    return document["number"], program, place, (stdin, stdout, stderr)


class Server:
    """Runs the programs that the supervisor sends, until it closes.

    Args:
        connection: to the supervisor.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._running: dict[int, tuple[int, int]] = {}

    def serve(self) -> None:
        """Answer and report exits; when the supervisor has disconnected, kill the remaining programs."""
        is_open = True
        while is_open:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._running:
                    self._ended(descriptor)
                else:
                    is_open = self._request()
        for _, pid in self._running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _request(self) -> bool:
        """Start a program; return False if the supervisor asks no more."""
        try:
            line, descriptors, _, _ = socket.recv_fds(self._connection, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
            while line and not line.endswith(b"\n"):
                line += self._connection.recv(_MESSAGE_BYTES)
        except OSError:
            return False
        if not line:
            return False
        number, program, place, streams = unpacked(line, descriptors)
        try:
            pid, reasons = start(program, place, streams)
            why = reason(reasons)
        except StartError as error:
            pid, why = 0, str(error)
        for descriptor in descriptors:
            os.close(descriptor)
        if why:
            return self._say({"number": number, "error": why})
        child = os.pidfd_open(pid)
        self._running[child] = number, pid
        self._poll.register(child, select.POLLIN)
        return self._say({"number": number, "pid": pid})

    def _ended(self, child: int) -> None:
        number, pid = self._running.pop(child)
        self._poll.unregister(child)
        os.close(child)
        self._say({"number": number, "status": os.waitpid(pid, 0)[1]})

    def _say(self, document: dict[str, Any]) -> bool:
        # A process that has ended is noticed by the next poll.
        with suppress(OSError):
            self._connection.sendall(json.dumps(document).encode() + b"\n")
        return True


def main(path: str) -> int:
    """Connect and serve."""
    linux.become_subreaper()
    # Slurm signals every process of a step; this one ends when the program has.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        connection.connect(path)
        Server(connection).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
