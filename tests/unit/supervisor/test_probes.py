import asyncio
import struct

import pytest

from isthmus.podproto.plan import Action, ActionKind, Probe
from isthmus.supervisor.containers import grpc, probes
from isthmus.supervisor.containers.probes import Judge, ProbeError, request


def action(kind, **rest):
    return Action(ActionKind(kind), **rest)


def probe(kind, **rest):
    return Probe(action(kind), **{"period_s": 1, "timeout_s": 1, "success": 1, "failure": 1, **rest})


@pytest.mark.parametrize(
    ("success", "failure", "well", "answers", "reported"),
    [
        (1, 3, True, "---", ["", "", "ill"]),
        (1, 3, True, "--+---", ["", "", "", "", "", "ill"]),
        (2, 1, False, "++", ["", "well"]),
        (1, 1, False, "-+-", ["", "well", "ill"]),
        (1, 1, None, "+", ["well"]),
        (1, 2, None, "--", ["", "ill"]),
        (1, 3, True, "+++", ["", "", ""]),
    ],
)
def test_verdict_changes_after_enough_answers_in_a_row(success, failure, well, answers, reported):
    judge = Judge(probe("exec", success=success, failure=failure), well)
    seen = []
    for answer in answers:
        changes = judge.take(answer == "+")
        seen.append(("well" if judge.well else "ill") if changes else "")
    assert seen == reported


def test_request_has_the_probes_headers_instead_of_the_usual():
    asked = action("http", path="x?y", headers=(("host", "web"), ("X-A", "1")))
    lines = request(asked, "10.0.0.1", 80).decode().split("\r\n")
    assert lines[0] == "GET /x?y HTTP/1.1"
    assert {"host: web", "X-A: 1", "User-Agent: kube-probe/isthmus"} <= set(lines)
    assert "Host: 10.0.0.1:80" not in lines


def test_request_with_a_line_break_is_refused():
    with pytest.raises(ProbeError):
        request(action("http", headers=(("X", "a\r\nY: b"),)), "h", 1)


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        (b"HTTP/1.1 200 OK\r\n", ""),
        (b"HTTP/1.1 304 Not Modified\r\n", ""),
        (b"HTTP/1.1 404 Not Found\r\n", "HTTP status 404"),
        (b"HTTP/1.1 500\r\n", "HTTP status 500"),
        (b"SSH-2.0-x\r\n", "the answer is no HTTP"),
    ],
)
def test_answers_of_http(line, reported):
    assert asked("http", lambda reader, writer: _said(writer, line)) == reported


def asked(kind, answer):
    """Ask a server that does `answer` with each connection."""

    async def ask():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await probes.failure(action(kind, port=port, host="127.0.0.1", service="web"), None, 2)
        finally:
            server.close()

    return asyncio.run(ask())


async def _said(writer, content):
    writer.write(content)
    await writer.drain()
    writer.close()


def health(message, flags=0):
    """What a gRPC server answers: settings, headers, one message, trailers."""
    body = b"\0" + struct.pack("!I", len(message)) + message
    data = [grpc.frame(0, flags, 1, body)] if message is not None else []
    return [grpc.frame(4, 0, 0, b""), grpc.frame(1, 4, 1, b"\x88"), *data, grpc.frame(1, 5, 1, b"\x88")]


@pytest.mark.parametrize(
    ("frames", "reported"),
    [
        (health(b"\x08\x01"), ""),
        (health(b"\x08\x02"), "the service is NOT_SERVING"),
        (health(b""), "the service is UNKNOWN"),
        (
            [grpc.frame(4, 0, 0, b""), grpc.frame(1, 5, 1, b"\x88")],
            "the service does not know health checks, or not of this",
        ),
        ([grpc.frame(7, 0, 0, b"\0" * 8)], "the service does not take the call"),
        ([grpc.frame(6, 0, 0, b"12345678"), *health(b"\x08\x01")], ""),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "the answer is no HTTP/2"),
        ([], "the connection ended before the answer"),
    ],
)
def test_answers_of_grpc(frames, reported):
    async def answer(reader, writer):
        await reader.readexactly(24)
        await _said(writer, b"".join(frames))

    assert asked("grpc", answer).startswith(reported)
    assert bool(asked("grpc", answer)) == bool(reported)


def test_grpc_request_is_what_a_server_reads():
    seen = []

    async def answer(reader, writer):
        seen.append(await reader.readexactly(24))
        while sum(map(len, seen)) < 250:
            part = await reader.read(1000)
            seen.append(part)
            if part.endswith(b"\x0a\x03web"):
                break
        await _said(writer, b"".join(health(b"\x08\x01")))

    assert asked("grpc", answer) == ""
    wire = b"".join(seen)
    assert wire.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"\x05:path\x1c/grpc.health.v1.Health/Check" in wire
    assert wire.endswith(grpc.frame(0, 1, 1, b"\0\0\0\0\x05\x0a\x03web"))


def test_no_answer_in_time_is_a_failure():
    async def ask():
        return await probes.failure(action("sleep", seconds=5), None, 0.01)

    assert asyncio.run(ask()) == "no answer within 0.01 s"


def test_first_question_waits_for_its_moment():
    times = []

    class Asked:
        async def ask(self, argv, timeout_s):
            times.append(asyncio.get_running_loop().time())
            return 1, "no"

    async def watch():
        reported = []
        first_s = asyncio.get_running_loop().time() + 0.1
        await probes.watch(
            probe("exec", failure=2, period_s=0.05, initial_delay_s=60),
            Asked(),
            True,
            first_s,
            lambda *what: reported.append(what) or not what[0],
        )
        return first_s, reported

    first_s, reported = asyncio.run(watch())
    assert reported == [(False, True, "exit code 1: no"), (True, False, "exit code 1: no")]
    assert 0 <= times[0] - first_s < 0.04
    assert times[1] - times[0] >= 0.04


@pytest.mark.parametrize(
    ("kind", "well", "success", "reported"),
    [
        # At 0, 0.1, 0.3, 0.7, 1.5 s, until the distance is the period.
        ("tcp", False, 1, [0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5]),
        ("exec", False, 1, [0, 1, 2, 3]),
        ("tcp", False, 2, [0, 1, 2, 3]),
        ("tcp", None, 1, [0, 1, 2, 3]),
        ("tcp", True, 1, [0, 1, 2, 3]),
    ],
)
def test_readiness_is_asked_for_more_often_until_it_is_there(kind, well, success, reported, monkeypatch):
    now_s, times = 0.0, []

    class Loop:
        def time(self):
            return now_s

    async def sleep(seconds):
        nonlocal now_s
        now_s += seconds

    async def failure(*_):
        times.append(round(now_s, 3))
        return "no"

    monkeypatch.setattr(probes.asyncio, "get_running_loop", Loop)
    monkeypatch.setattr(probes.asyncio, "sleep", sleep)
    monkeypatch.setattr(probes, "failure", failure)
    asked_for = probe(kind, success=success, failure=100)
    asyncio.run(probes.watch(asked_for, None, well, 0.0, lambda *_: now_s < 3))
    assert times == reported


@pytest.mark.parametrize(
    ("location", "reported"),
    [
        ("/well", ""),
        ("http://127.0.0.1:{port}/well?x=1", ""),
        ("/ill", "HTTP status 500"),
        ("ill", "HTTP status 500"),
        ("http://127.0.0.1:{port}/ill", "HTTP status 500"),
        # Another host's answer says nothing of this container.
        ("http://0.0.0.0:{port}/ill", ""),
        ("/", "more than 10 redirects"),
        ("ftp://127.0.0.1/ill", ""),
        ("", ""),
        ("http://[", "Invalid IPv6 URL"),
        ("http://127.0.0.1:99999/", "Port out of range 0-65535"),
    ],
)
def test_redirects_are_followed_within_the_host(location, reported):
    async def answer(reader, writer):
        path = (await reader.readline()).split()[1]
        port = writer.get_extra_info("sockname")[1]
        lines = {b"/well": "200 OK", b"/well?x=1": "200 OK", b"/ill": "500 No"}
        head = lines.get(path, f"302 Found\r\nX: y\r\nlocation: {location.format(port=port)}")
        await _said(writer, f"HTTP/1.1 {head}\r\n\r\n".encode())

    assert asked("http", answer) == reported
