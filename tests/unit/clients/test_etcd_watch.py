"""What only an unlucky moment shows of a real etcd."""

from __future__ import annotations

import io
import json
import socket
from http.client import HTTPConnection

import pytest
import requests
from urllib3 import HTTPResponse

from isthmus.clients.etcd.watch import Watch


class OneAnswer:
    """A gateway that gives one stream, over a connection that its reader has closed already."""

    def __init__(self, raw: HTTPResponse) -> None:
        self._answer = requests.Response()
        self._answer.status_code = 200
        self._answer.raw = raw

    def stream(self, path: str, body: object) -> requests.Response:
        return self._answer


LINE = {"result": {"header": {"revision": "2"}, "events": [{"kv": {"key": "YQ==", "mod_revision": "2"}}]}}


def ended(**parts: object) -> HTTPResponse:
    return HTTPResponse(io.BytesIO(json.dumps(LINE).encode() + b"\n"), preload_content=False, **parts)


def closed_socket() -> socket.socket:
    one = socket.socket()
    one.close()
    return one


@pytest.mark.parametrize(
    "raw",
    [
        ended(connection=HTTPConnection("etcd"), sock_shutdown=closed_socket().shutdown),
        ended(connection=None, sock_shutdown=closed_socket().shutdown),
        ended(),
    ],
    ids=["closed", "given back", "released"],
)
def test_close_bears_a_connection_that_is_closed_already(raw):
    watch = Watch(OneAnswer(raw), "", 1, pytest.fail)
    changes = iter(watch)
    assert next(changes).revision == 2
    watch.close()
    assert list(changes) == []


class Torn(io.BytesIO):
    """What a reader sees of a connection that another thread shuts between two reads."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.shut = lambda: None

    def read(self, size: int | None = -1) -> bytes:
        if content := super().read(size):
            return content
        self.shut()
        raise ValueError("Read on closed or unwrapped SSL socket.")


@pytest.mark.parametrize("closes", [True, False])
def test_connection_shut_between_two_reads_ends_a_closed_watch_alone(closes):
    torn = Torn(json.dumps(LINE).encode() + b"\n")
    watch = Watch(OneAnswer(HTTPResponse(torn, preload_content=False)), "", 1, pytest.fail)
    if closes:
        torn.shut = watch.close
        assert list(watch) == []
    else:
        with pytest.raises(ValueError, match="unwrapped SSL socket"):
            list(watch)
