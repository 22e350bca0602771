"""Peers of a node's network daemon that it need not bear with, run there as an ordinary user: standard library only.

daemon_peers.py mute EACH SECONDS    open connections, ask on all of them, and read nothing
daemon_peers.py hand COUNT           ask, each time with a hundred descriptors for the daemon; print the answers
"""

import os
import socket
import sys
import time
from contextlib import suppress

SOCKET = "/run/isthmus/networkd.sock"
LIST, STATUS = (b'{"version":1,"op":"%s"}\n' % op for op in (b"list", b"status"))
DESCRIPTORS = 100


def connect() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(SOCKET)
    return connection


def mute(each: int, seconds: int) -> None:
    until_s, held = time.monotonic() + seconds, []
    for _ in range(each):
        with suppress(OSError):
            held.append(connect())
            held[-1].setblocking(False)
    while time.monotonic() < until_s:
        for connection in held:
            with suppress(OSError):
                connection.send(LIST * 50)
        time.sleep(0.05)


def hand(count: int) -> None:
    answers = 0
    with open(os.devnull) as null:
        for _ in range(count):
            with suppress(OSError), connect() as connection:
                socket.send_fds(connection, [STATUS], [null.fileno()] * DESCRIPTORS)
                answers += bool(connection.recv(65536))
    print(answers)


if __name__ == "__main__":
    if sys.argv[1] == "mute":
        mute(int(sys.argv[2]), int(sys.argv[3]))
    else:
        hand(int(sys.argv[2]))
