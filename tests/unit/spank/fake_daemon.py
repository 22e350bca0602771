"""The node's network daemon for tests of the plugin: strict, scripted, on a real UNIX socket.

A request that the protocol does not know, or that has a field too many or too few, fails the test; so does a scripted
answer that nobody asked for.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINE_MAX = 64 * 1024
GET = {"version": int, "op": str, "job": int}
PREPARE = {**GET, "uid": int, "user": str, "name": str, "nodes": str, "driver": str, "timeout_s": int}
FIELDS: dict[str, dict[str, type]] = {"job_prepare": PREPARE, "job_get": GET, "job_release": GET}
OPTIONAL: dict[str, dict[str, type]] = {"job_prepare": {"reservation": str}}


@dataclass(frozen=True)
class Held:
    """An answer of which only this part ever comes; the connection stays open."""

    part: bytes = b""


# Bytes go out as they are, and the daemon hangs up.
Answer = dict[str, Any] | bytes | Held


def ok(**fields: Any) -> dict[str, Any]:
    """Return a reply that grants."""
    return {"version": 1, "ok": True, **fields}


def refusal(message: str, code: str = "failed") -> dict[str, Any]:
    """Return a reply that refuses."""
    return {"version": 1, "ok": False, "error": {"code": code, "message": message}}


class FakeDaemon:
    """Answers each operation from its own queue; the last answer of a queue is repeated.

    Attributes:
        calls: how many connections came.
        requests: what was asked, in order.
        problems: what no right plugin does.
    """

    def __init__(self, path: Path, script: Mapping[str, list[Answer]], *, deaf: bool = False) -> None:
        self.path = path
        self.calls = 0
        self.requests: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._script = {op: list(answers) for op, answers in script.items()}
        self._held: list[socket.socket] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(0 if deaf else 8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        if deaf:
            self._fill_queue()
        else:
            self._thread.start()

    def close(self) -> None:
        """Stop; what was held silent is let go."""
        if self._thread.is_alive():
            self._socket.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        for held in (*self._held, self._socket):
            held.close()
        self.path.unlink()

    def check(self) -> None:
        """Fail where the plugin asked wrongly, or did not ask what it should."""
        unasked = set(self._script) - {request["op"] for request in self.requests}
        assert (self.problems, unasked) == ([], set())

    def _fill_queue(self) -> None:
        """Take the place of one caller, so that the next one finds the queue full."""
        for _ in range(2):
            caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            caller.setblocking(False)
            caller.connect_ex(str(self.path))
            self._held.append(caller)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        answer = self._judge(connection.makefile("rb").readline(LINE_MAX + 1))
        if isinstance(answer, Held):
            connection.sendall(answer.part)
            self._held.append(connection)
            return
        with connection:
            line = answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n"
            try:
                connection.sendall(line)
            except OSError:  # the plugin hung up on a line that is too long
                connection.close()

    def _judge(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
            self._validate(request, line)
            self.requests.append(request)
            answers = self._script[request["op"]]
            return answers.pop(0) if len(answers) > 1 else answers[0]
        except (ValueError, KeyError, TypeError) as error:
            self.problems.append(f"{error!r} in {line[:200]!r}")
            return refusal("the test does not expect this", "malformed")

    def _validate(self, request: dict[str, Any], line: bytes) -> None:
        wanted = FIELDS[request["op"]]
        known = wanted | OPTIONAL.get(request["op"], {})
        if not line.endswith(b"\n") or request["version"] != 1:
            raise ValueError("not a line of version 1")
        if not set(wanted) <= set(request) <= set(known):
            raise ValueError(f"fields {sorted(set(request) ^ set(wanted))}")
        if any(type(value) is not known[key] for key, value in request.items()):
            raise TypeError("a field of the wrong type")
