"""Programs of a coupled run, and what people leave listening on localhost: each a small server, chosen by a word.

database      keeps what is posted to it
simulation    posts squares to the database, by its name, and ends
notebook      computes from what the database has, by its name, whenever it is asked
debugger      answers packets of GDB's remote protocol, as gdbserver does
ask           prints what a server answers: HTTP, or the debugger's
"""

from __future__ import annotations

import http.server
import json
import socket
import socketserver
import sys
import time
import urllib.request
from typing import ClassVar

DATABASE = "http://database:5432/points"
POINTS = 10
WAITS_S = 120


class Database(http.server.BaseHTTPRequestHandler):
    """A list that grows."""

    points: ClassVar[list[int]] = []

    def do_POST(self) -> None:
        """Take one."""
        self.points.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        _answer(self, "taken")

    def do_GET(self) -> None:
        """Give all."""
        _answer(self, json.dumps(self.points))


class Notebook(http.server.BaseHTTPRequestHandler):
    """The sum of all points."""

    def do_GET(self) -> None:
        """Ask the database."""
        with urllib.request.urlopen(DATABASE, timeout=5) as answer:
            points = json.load(answer)
        _answer(self, f"{len(points)} points, {sum(points)}")


class Debugger(socketserver.StreamRequestHandler):
    """Acknowledges each packet."""

    def handle(self) -> None:
        """Read up to a checksum."""
        while self.rfile.read(1) not in (b"#", b""):
            pass
        self.wfile.write(b"+$OK#9a")


class Listener(socketserver.ThreadingTCPServer):
    """Where it was a moment ago."""

    allow_reuse_address = True


def _answer(handler: http.server.BaseHTTPRequestHandler, text: str) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(text.encode())


def simulate() -> None:
    """Post squares; the database may come later than this."""
    until = time.monotonic() + WAITS_S
    for number in range(POINTS):
        while True:
            try:
                urllib.request.urlopen(DATABASE, json.dumps(number**2).encode(), timeout=5).read()
                break
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
    print("simulated", flush=True)


def ask(where: str) -> str:
    """Return what a server says."""
    if where.startswith("http"):
        with urllib.request.urlopen(where, timeout=5) as answer:  # noqa: S310 -- http alone
            return str(answer.read().decode())
    host, _, port = where.partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"$?#3f")
        return connection.recv(100).decode()


def main(word: str, where: str = "") -> None:
    """Do as the word says; servers until they are ended, at `address:port`."""
    if word == "simulation":
        simulate()
    elif word == "ask":
        print(ask(where))
    else:
        handlers = {"database": Database, "notebook": Notebook, "debugger": Debugger}
        address, _, port = where.partition(":")
        Listener((address, int(port)), handlers[word]).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
