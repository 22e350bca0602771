"""The end of a memory step: `python -I -m isthmus.supervisor.step <socket>`, started by srun with its limit.

What this process starts is in the step's control group, so the step's memory is the container's. The supervisor
hands it a program and all descriptors it needs by the socket: streams, namespaces, root. It answers {"pid"} or
{"error"}, then {"status"} as wait(2) gives it, and stays until the supervisor has read the group's figures and closes.
If the supervisor goes, so does the program.
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

from . import linux
from .processes import Identity, Place, Program, StartError, reason, start

STREAMS = 3
_MESSAGE_BYTES = 4 << 20
_MOST_DESCRIPTORS = 16


def packed(program: Program, place: Place) -> bytes:
    """Return what the supervisor sends, beside the descriptors: streams, namespaces, root."""
    identity = program.identity or Identity()
    told = {
        "argv": list(program.argv),
        "env": dict(program.env),
        "cwd": program.cwd,
        "terminal": program.terminal,
        "identity": [identity.uid, identity.gid, list(identity.groups), sorted(identity.capabilities)],
        "escalates": identity.escalates,
        "calls": base64.b64encode(identity.calls).decode(),
        "kinds": [kind for _, kind in place.namespaces],
    }
    return json.dumps(told).encode() + b"\n"


def unpacked(line: bytes, descriptors: list[int]) -> tuple[Program, Place, tuple[int, int, int]]:
    """Read what `packed` has made."""
    told = json.loads(line)
    uid, gid, groups, capabilities = told["identity"]
    calls = base64.b64decode(told["calls"])
    identity = Identity(uid, gid, tuple(groups), frozenset(capabilities), told["escalates"], calls)
    stdin, stdout, stderr, *spaces, root = descriptors
    place = Place(tuple(zip(spaces, told["kinds"])), root)
    return Program(told["argv"], told["env"], told["cwd"], identity, told["terminal"]), place, (stdin, stdout, stderr)


def serve(connection: socket.socket) -> None:
    """Run the one program that the supervisor sends."""
    line, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
    while line and not line.endswith(b"\n"):
        line += connection.recv(_MESSAGE_BYTES)
    if not line:
        return
    program, place, streams = unpacked(line, descriptors)
    try:
        pid, reasons = start(program, place, streams)
        why = reason(reasons)
    except StartError as error:
        pid, why = 0, str(error)
    for descriptor in descriptors:
        os.close(descriptor)
    if why:
        _say(connection, {"error": why})
        return
    _say(connection, {"pid": pid})
    _watch(connection, pid)


def _watch(connection: socket.socket, pid: int) -> None:
    child = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (child, connection.fileno()):
        poll.register(descriptor, select.POLLIN)
    if child not in [descriptor for descriptor, _ in poll.poll()]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        _say(connection, {"status": status})
        connection.recv(1)


def _say(connection: socket.socket, told: dict[str, Any]) -> None:
    connection.sendall(json.dumps(told).encode() + b"\n")


def main(path: str) -> int:
    """Connect and serve."""
    linux.become_subreaper()
    # Slurm signals every process of a step; this one ends when the program has.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
        connection.connect(path)
        serve(connection)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
