"""Answers of HTTP that come in pieces of any size, as the API server sends them, and what is none."""

import pytest

from isthmus.clients.kube.watches import HEAD_BYTES, Answer

PLAIN = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n'
REFUSED = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
UNTIL_CLOSED = b'HTTP/1.0 200 OK\r\n\r\n{"a":1}'


def read(text, size, *, closes=False):
    answer, content = Answer(), b""
    for at in range(0, len(text), size):
        content += answer.feed(text[at : at + size])
    if closes:
        content += answer.feed(b"")
    return answer, content


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("text", [PLAIN, CHUNKED])
def test_answer_in_pieces_is_whole_at_its_end(text, size):
    answer, content = read(text, size)
    assert (answer.status, answer.is_whole, answer.keeps, content) == (200, True, True, b'{"a":1}')
    assert not read(text[:-1], size)[0].is_whole


def test_content_comes_as_soon_as_it_is_there():
    answer = Answer()
    assert answer.feed(CHUNKED[: CHUNKED.index(b'":1')]) == b'{"a'
    assert not answer.is_whole


def test_refusal_without_content_is_whole():
    answer, content = read(REFUSED, 1)
    assert (answer.status, answer.is_whole, content) == (410, True, b"")


def test_answer_without_a_length_ends_with_its_connection():
    answer, content = read(UNTIL_CLOSED, 4, closes=True)
    assert (answer.is_whole, answer.keeps, content) == (True, False, b'{"a":1}')


def test_server_says_that_it_closes():
    answer, _ = read(PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), 5)
    assert answer.is_whole
    assert not answer.keeps


@pytest.mark.parametrize("text", [PLAIN[:20], PLAIN[:-1], CHUNKED[:-5], CHUNKED[:-2], b""])
def test_answer_that_is_cut_off_is_none(text):
    with pytest.raises(ValueError, match="cut off"):
        read(text, 9, closes=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "a length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n", "a length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "of another length"),
        (b"x" * (HEAD_BYTES + 1), "a head without an end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * (HEAD_BYTES + 1), "a line without an end"),
    ],
)
def test_what_is_no_such_answer_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        read(text, 1 << 20)
