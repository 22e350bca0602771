"""What an attacker's program does at jobsd's port; standard library alone, for it runs as a user on a node.

`hear [CREDENTIAL]` prints what jobsd answers to a credential: one of the caller's own for its nonce, or the one given;
`replay` sends one's own a second time, on another connection; `flood COUNT` holds connections until its input ends.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

SETTINGS = Path("/etc/isthmus/kubernetes.json")
CA = "/etc/isthmus/ca.crt"


def connected() -> tuple[ssl.SSLSocket, Any, dict[str, Any]]:
    """Return a connection, a reader of its lines, and the hello."""
    reported = json.loads(SETTINGS.read_text())["jobs"]
    plain = socket.create_connection((reported["address"], reported["port"]), timeout=20)
    encrypted = ssl.create_default_context(cafile=CA).wrap_socket(plain, server_hostname=reported["address"])
    lines = encrypted.makefile("rb")
    return encrypted, lines, json.loads(lines.readline())


def credential(hello: dict[str, Any]) -> str:
    """Return one of the caller's own for a hello."""
    payload = f"isthmus-jobsd {hello['schema']} {hello['nonce']}"
    command = ["munge", f"--restrict-uid={hello['uid']}", f"--string={payload}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def answered(connection: ssl.SSLSocket, lines: Any, text: str) -> bytes:
    """Return the first line after a credential."""
    connection.sendall(json.dumps({"credential": text}).encode() + b"\n")
    try:
        return bytes(lines.readline())
    except OSError as error:
        return f'{{"error": "{type(error).__name__}"}}\n'.encode()


def main(verb: str, *words: str) -> None:
    """Do one of the above."""
    if verb == "flood":
        reported = json.loads(SETTINGS.read_text())["jobs"]
        held = []
        for _ in range(int(words[0])):
            try:
                held.append(socket.create_connection((reported["address"], reported["port"]), timeout=1))
            except OSError:
                break
        print(len(held), flush=True)
        sys.stdin.read()
        return
    connection, lines, hello = connected()
    text = words[0] if words else credential(hello)
    said = answered(connection, lines, text)
    if verb == "replay":
        connection, lines, hello = connected()
        said = answered(connection, lines, text)
    sys.stdout.write(said.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
