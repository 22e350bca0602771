"""Messages between node and controller; each side treats the other's as untrusted."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

SCHEMA = 1
CA_PATH, JOIN_PATH, FILE_PATH = "/v1/ca", "/v1/join", "/v1/files/"
REQUEST_BYTES = 16 << 10
ANSWER_BYTES = 64 << 20

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_RELEASE = re.compile(r"[0-9a-f]{0,64}")
_TOKEN = re.compile(r"([0-9a-f]{12})?")
_SECRET = re.compile(r"[A-Za-z0-9_-]{0,64}")


class MessageError(Exception):
    """Bytes that are no message of this version."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a node asks.

    Attributes:
        name: that it will have.
        release: of its Isthmus.
        token: the token's id, "" for none.
        secret: the token's.
        request: for a certificate, PEM.
        seal: its X25519 key for this answer, base64.
        look: it only wants to see; nothing is signed or recorded.
    """

    name: str
    release: str
    token: str
    secret: str
    request: str
    seal: str
    look: bool

    def written(self) -> bytes:
        """As it is sent."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}).encode()


_SHAPES = {"name": _NAME, "release": _RELEASE, "token": _TOKEN, "secret": _SECRET}


def read_request(text: bytes) -> Request:
    """Read what anybody may have sent.

    Raises:
        MessageError: it is no request; its bytes are not repeated.
    """
    document = _object(text)
    if set(document) != {"schema", *(field.name for field in fields(Request))} or document["schema"] != SCHEMA:
        raise MessageError(f"the request is not of schema {SCHEMA}; make the image with the cluster's version")
    look = document.pop("look")
    del document["schema"]
    if not isinstance(look, bool) or not all(isinstance(value, str) for value in document.values()):
        raise MessageError("the request has values of another kind")
    wrong = [name for name, shape in _SHAPES.items() if not shape.fullmatch(document[name])]
    if wrong:
        raise MessageError(f"the request's {', '.join(wrong)} cannot be; names are those of hosts, in lower case")
    return Request(**document, look=look)


def encoded(content: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(content).decode()


def decoded(text: str) -> bytes:
    """The bytes of such a text.

    Raises:
        MessageError: it is none.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MessageError("no base64") from error


def context(name: str, key: str) -> bytes:
    """What an answer is sealed for."""
    return f"{name} {key}".encode()


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError("the request is no JSON") from error
    if not isinstance(document, dict):
        raise MessageError("the request is no object")
    return document
