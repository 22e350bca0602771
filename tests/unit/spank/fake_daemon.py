"""The node's network daemon for tests of the plugin: strict, scripted, on a real UNIX socket.

A request that the real daemon's own reader refuses, or that the test does not expect, fails the test; so does a
scripted answer that nobody asked for.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.network.api.protocol import LINE_MAX, RequestError, parse_request


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
            parse_request(line)
            request = json.loads(line)
            answers = self._script[request["op"]]
        except (RequestError, KeyError) as error:
            self.problems.append(f"{error!r} in {line[:200]!r}")
            return refusal("the test does not expect this", "malformed")
        self.requests.append(request)
        return answers.pop(0) if len(answers) > 1 else answers[0]
