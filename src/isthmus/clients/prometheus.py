"""Prometheus on this host, and daemons that have figures for it."""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients import http
from isthmus.clients.http import Limits, NoAnswerError

TIMEOUT_S = 10.0
ANSWER_BYTES = 8 << 20
_OK = 200
CA = Path("/etc/isthmus/ca.crt")
SETTINGS = Path("/etc/isthmus/monitoring")
PASSWORD = SETTINGS / "password"
PORT = 9090


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that fires.

    Attributes:
        name: of its rule.
        severity: critical or warning.
        summary: in words.
    """

    name: str
    severity: str
    summary: str


def figures(url: str, socket: Path | None = None) -> str:
    """Return what a daemon offers on the loopback, without any proxy, or on a UNIX socket.

    Raises:
        OSError: it does not answer.
    """
    return _open(url, socket=socket)


def firing(port: int = PORT, password: Path = PASSWORD, ca: Path = CA) -> list[Alert]:
    """Return the alerts that fire.

    Raises:
        OSError: Prometheus does not answer, or the caller may not read its password.
        ValueError: its answer is of another form.
    """
    word = b64encode(f"admin:{password.read_text().strip()}".encode()).decode()
    url = f"https://localhost:{port}/api/v1/alerts"
    return read(json.loads(_open(url, {"Authorization": f"Basic {word}"}, ssl.create_default_context(cafile=str(ca)))))


def read(answer: Mapping[str, Any]) -> list[Alert]:
    """Read what Prometheus answers.

    Raises:
        ValueError: it is of another form.
    """
    try:
        found = [each for each in answer["data"]["alerts"] if each["state"] == "firing"]
        labels = [each["labels"] | each["annotations"] for each in found]
        return [Alert(each["alertname"], each.get("severity", ""), each.get("summary", "")) for each in labels]
    except (KeyError, TypeError) as error:
        raise ValueError(f"Prometheus answered {answer!r:.200}") from error


def _open(
    url: str,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    socket: Path | None = None,
) -> str:
    answer = http.ask("GET", url, Limits(TIMEOUT_S, ANSWER_BYTES), tls=tls, headers=headers, socket=socket)
    if answer.status != _OK:
        raise NoAnswerError(f"{url}: {answer.status} {answer.reason}")
    return answer.content.decode()
