import json
from dataclasses import replace

import pytest

from isthmus.node.messages import MessageError, Request, decoded, encoded, read_request

REQUEST = Request("c3", "0123456789abcdef", "a" * 12, "s" * 43, "csr", "seal", False)


def test_request_is_read_as_it_is_written():
    assert read_request(REQUEST.written()) == REQUEST


@pytest.mark.parametrize("name", ["c3", "node-17", "n" * 63, "0"])
def test_names_of_hosts_are_names(name):
    assert read_request(replace(REQUEST, name=name).written()).name == name


@pytest.mark.parametrize("name", ["", "C3", "c3.example", "-c3", "c3-", "n" * 64, "../c3", "c3\n", "c 3", "c3\0"])
def test_other_names_are_refused(name):
    with pytest.raises(MessageError, match="name"):
        read_request(replace(REQUEST, name=name).written())


@pytest.mark.parametrize("token", ["../../etc/shadow", "a" * 11, "A" * 12, "a" * 13, "a" * 12 + "\n"])
def test_token_that_is_no_id_is_refused(token):
    """It becomes the name of a file."""
    with pytest.raises(MessageError, match="token"):
        read_request(replace(REQUEST, token=token).written())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 20_000,
        b'{"schema": 1}',
        json.dumps({**json.loads(REQUEST.written()), "schema": 2}).encode(),
        json.dumps({**json.loads(REQUEST.written()), "more": 1}).encode(),
        json.dumps({**json.loads(REQUEST.written()), "name": 3}).encode(),
        json.dumps({**json.loads(REQUEST.written()), "look": "yes"}).encode(),
        json.dumps({**json.loads(REQUEST.written()), "secret": ["s"]}).encode(),
    ],
)
def test_bytes_that_are_no_request_are_refused(text):
    with pytest.raises(MessageError):
        read_request(text)


def test_base64_is_read_strictly():
    assert decoded(encoded(b"\0\xff")) == b"\0\xff"
    for text in ("a", "****", "YQ==\n", "é"):
        with pytest.raises(MessageError):
            decoded(text)
