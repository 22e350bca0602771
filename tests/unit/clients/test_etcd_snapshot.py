"""Snapshots as etcd streams them: whole, or an error."""

import base64
import io
import json
from contextlib import contextmanager
from hashlib import sha256

import pytest

from isthmus.clients.etcd.gateway import EtcdError, UnavailableError
from isthmus.clients.etcd.snapshot import Snapshots, is_whole
from isthmus.clients.http import NoAnswerError

PAGES = b"page" * 256
WHOLE = PAGES + sha256(PAGES).digest()


class FakeGateway:
    """Streams lines, then breaks off if asked to."""

    def __init__(self, lines, is_broken=False):
        self.sent, self.is_broken = lines, is_broken

    @contextmanager
    def stream(self, path, body):
        assert path == "maintenance/snapshot"
        yield self

    def lines(self):
        yield from self.sent
        if self.is_broken:
            raise NoAnswerError("gone")


def parts(content, size):
    """The answer's lines; protobuf's JSON leaves out an empty blob."""
    blobs = [content[at : at + size] for at in range(0, len(content), size)]
    reported = [{"result": {"blob": base64.b64encode(blob).decode()}} for blob in blobs]
    return [json.dumps(each).encode() for each in [*reported, {"result": {}}]]


@pytest.mark.parametrize("size", [1, 31, 512, 1024, 5000])
def test_whole_stream_is_written(size):
    file = io.BytesIO()
    assert Snapshots(FakeGateway(parts(WHOLE, size))).save(file) == len(WHOLE)
    assert file.getvalue() == WHOLE


@pytest.mark.parametrize(
    ("gateway", "error"),
    [
        (FakeGateway([]), UnavailableError),
        (FakeGateway(parts(PAGES, 512)), UnavailableError),
        (FakeGateway(parts(WHOLE[:-1], 512)), UnavailableError),
        (FakeGateway(parts(b"x" + WHOLE[1:], 512)), UnavailableError),
        (FakeGateway(parts(b"page" + sha256(b"page").digest(), 512)), UnavailableError),
        (FakeGateway(parts(WHOLE, 512), is_broken=True), UnavailableError),
        (FakeGateway([b'{"error": {"code": 14}}']), EtcdError),
        (FakeGateway([b"<html>"]), EtcdError),
    ],
)
def test_broken_stream_is_an_error(gateway, error):
    with pytest.raises(error):
        Snapshots(gateway).save(io.BytesIO())


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (WHOLE, True),
        (b"", False),
        (PAGES, False),
        (sha256(b"").digest(), False),
        (WHOLE[:-1], False),
        (b"x" + WHOLE[1:], False),
        (WHOLE[:-1] + b"x", False),
        (PAGES[512:] + WHOLE[-32:], False),
    ],
)
def test_wholeness_of_a_file(tmp_path, content, wanted):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert is_whole(path) is wanted
