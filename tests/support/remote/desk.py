"""What users run on a login host, or at home, as far as tests need it; of the standard library alone.

desk.py display NUMBER         stand in for an X server at home: refuse each client, with a reason that shows who asks
desk.py draw                   be a client of $DISPLAY with the cookie that xauth has; print the server's reason
desk.py notebook PORT TOKEN    serve on localhost as Jupyter does: who has the token
desk.py editor                 serve as an editor's remote server does: on a free port of localhost, which it prints,
                               and on a socket in $XDG_RUNTIME_DIR; answer each line until the client has enough
desk.py fetch URL              print what a server answers, and the status
desk.py talk HOST PORT [SOCKS] talk to the editor's server, or by a proxy on localhost's port SOCKS
desk.py call                   talk to it by its socket
"""

import http.client
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TIMEOUT_S = 8
LOCALHOST = "127.0.0.1"
COOKIE = b"MIT-MAGIC-COOKIE-1"
SOCKET = "isthmus-test-editor.sock"


def runtime() -> Path:
    # A host without systemd-logind has none.
    return Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp"))


def padded(text: bytes) -> bytes:
    return text + bytes(-len(text) % 4)


def whole(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError(f"{size - len(found)} bytes were not sent")
        found += part
    return found


def display(number: str) -> None:
    server = socket.create_server((LOCALHOST, 6000 + int(number)))
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        # Who only looks whether it is there sends nothing.
        with connection, suppress(EOFError, OSError):
            _, _, name, data = struct.unpack("<c x H 2x H H 2x", whole(connection, 12))
            sent = whole(connection, len(padded(bytes(name))) + len(padded(bytes(data))))
            reason = b"no screen for " + sent[:name]
            head = struct.pack("<BBHHH", 0, len(reason), 11, 0, len(padded(reason)) // 4)
            connection.sendall(head + padded(reason))


def draw() -> str:
    host, _, number = os.environ["DISPLAY"].partition(":")
    listed = subprocess.run(["xauth", "list", os.environ["DISPLAY"]], check=True, capture_output=True, text=True)
    cookie = bytes.fromhex(listed.stdout.split()[-1])
    with socket.create_connection((host, 6000 + int(float(number))), TIMEOUT_S) as connection:
        head = struct.pack("<c x H H H H 2x", b"l", 11, 0, len(COOKIE), len(cookie))
        connection.sendall(head + padded(COOKIE) + padded(cookie))
        _, size, _, _, _ = struct.unpack("<BBHHH", whole(connection, 8))
        return whole(connection, size).decode()


def notebook(port: str, token: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("token", [""])[0]
            is_right = given == token or self.headers.get("Authorization") == f"token {token}"
            self.send_response(200 if is_right else 403)
            self.end_headers()
            self.wfile.write(b"kernels of " + str(os.getuid()).encode() if is_right else b"Forbidden")

    ThreadingHTTPServer((LOCALHOST, int(port)), Handler).serve_forever()


def editor() -> None:
    path = runtime() / SOCKET
    path.unlink(missing_ok=True)
    by_path = socket.socket(socket.AF_UNIX)
    by_path.bind(str(path))
    by_path.listen()
    server = socket.create_server((LOCALHOST, 0))

    def answer(connection: socket.socket) -> None:
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                lines.write(f"{os.getpid()} heard {line}")
                lines.flush()

    def answer_all(listening: socket.socket) -> None:
        while True:
            threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    print(f"listeningOn=={server.getsockname()[1]}==", flush=True)
    threading.Thread(target=answer_all, args=(by_path,), daemon=True).start()
    answer_all(server)


def fetch(url: str) -> str:
    found = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(found.netloc, timeout=TIMEOUT_S)
    connection.request("GET", f"{found.path}?{found.query}")
    answer = connection.getresponse()
    return f"{answer.status} {answer.read().decode()}"


def by_socks(host: str, port: int, proxy: int) -> socket.socket:
    """SOCKS 5 (RFC 1928): no authentication, connect to a name."""
    connection = socket.create_connection((LOCALHOST, proxy), TIMEOUT_S)
    connection.sendall(b"\5\1\0")
    whole(connection, 2)
    connection.sendall(b"\5\1\0\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    if whole(connection, 10)[1]:
        raise ConnectionRefusedError(f"{host}:{port} by the proxy")
    return connection


def said(connection: socket.socket) -> str:
    """Two lines, one after the other's answer, as an editor's connection stays open."""
    connection.settimeout(TIMEOUT_S)
    with connection, connection.makefile("rw") as lines:
        heard = []
        for word in ("open", "save"):
            lines.write(f"{word}\n")
            lines.flush()
            heard.append(lines.readline().strip())
        return "; ".join(heard)


def talk(host: str, port: str, proxy: str = "") -> str:
    if proxy:
        return said(by_socks(host, int(port), int(proxy)))
    return said(socket.create_connection((host, int(port)), TIMEOUT_S))


def call() -> str:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(runtime() / SOCKET))
    return said(connection)


WORDS: dict[str, Callable[..., str | None]] = {
    word.__name__: word for word in (display, draw, notebook, editor, fetch, talk, call)
}

if __name__ == "__main__":
    print(WORDS[sys.argv[1]](*sys.argv[2:]) or "")
