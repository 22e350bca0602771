"""What is said on the daemon's socket."""

import json
from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Driver, Transport
from isthmus.network.api import protocol
from isthmus.network.api.messages import (
    OPS,
    ErrorCode,
    Expose,
    JobGet,
    JobPrepare,
    JobRelease,
    JobServices,
    LeaseDrop,
    LeaseTake,
    List,
    LoginEnter,
    LoginPrepare,
    Metrics,
    NodeForget,
    Rekey,
    Reserve,
    Status,
    Trace,
    TraceProtocol,
    Unreserve,
    Withdraw,
)
from isthmus.network.api.protocol import RequestError, authorise, parse_request
from tests.support.pods.services import answering, place

PREPARE = JobPrepare(7, 1001, "alice", "run", ("c1", "c2"), Driver.PRIVATE)
REQUESTS = [
    PREPARE,
    JobPrepare(7, 0, "D\\alice", "a \u2603\n", ("c1",), Driver.FLANNEL, "web", 2.5),
    JobGet(7),
    JobRelease(7),
    JobServices(7, {}),
    JobServices(7, {place(): answering("10.64.0.3:8080", affinity_s=5)}),
    LeaseTake(),
    LeaseTake(0),
    LeaseDrop(1001),
    Reserve("web"),
    Unreserve("web", 1001),
    Expose("web", 443),
    Withdraw("web", 53, Transport.UDP, 1001),
    Status(),
    List(),
    Trace("10.64.0.1", "web.alice.cl", TraceProtocol.UDP, 53),
    Trace("a", "b"),
    Metrics(),
    NodeForget("c1"),
    Rekey(),
    LoginPrepare(1001, 4711),
    LoginEnter(1001, 2**22),
]


def line(op="job_prepare", **changed):
    """Return a request's line with some fields changed, `...` for gone."""
    given = {"version": 1, "op": op}
    if op == "job_prepare":
        given |= {"job": 7, "uid": 1001, "user": "alice", "name": "run", "nodes": "c[1-2]", "driver": "private"}
    given |= changed
    return json.dumps({name: value for name, value in given.items() if value is not ...}).encode()


def refused(line):
    with pytest.raises(RequestError) as caught:
        parse_request(line)
    return caught.value.code


def test_every_operation_is_among_the_examples():
    assert {type(request) for request in REQUESTS} == set(OPS.values())


@pytest.mark.parametrize("request_", REQUESTS)
def test_request_comes_back(request_):
    written = protocol.encode_request(request_)
    assert (written.count(b"\n"), written[-1:]) == (1, b"\n")
    assert parse_request(written) == request_


def test_agreed_example_is_read():
    assert parse_request(line()) == PREPARE
    assert parse_request(b' {"version":1, "op":"lease_take"} \r\n') == LeaseTake()


@pytest.mark.parametrize("wrong", [None, True, 1.5, "x", [], {}, [7], {"a": 1}, ...])
@pytest.mark.parametrize("name", ["job", "uid", "user", "name", "nodes", "driver"])
def test_field_of_another_type_is_malformed(name, wrong):
    """A text may also be one that cannot be, or here one that can."""
    if isinstance(wrong, str) and name in ("user", "name", "nodes"):
        assert isinstance(parse_request(line(**{name: wrong})), JobPrepare)
    elif isinstance(wrong, str) and name == "driver":
        assert refused(line(driver=wrong)) == ErrorCode.INVALID
    else:
        assert refused(line(**{name: wrong})) == ErrorCode.MALFORMED


@pytest.mark.parametrize(
    ("code", "bad"),
    [
        (ErrorCode.MALFORMED, b""),
        (ErrorCode.MALFORMED, b"\n"),
        (ErrorCode.MALFORMED, b"[]"),
        (ErrorCode.MALFORMED, b"{}"),
        (ErrorCode.MALFORMED, b"\xff\xfe{\x00}\x00"),
        (ErrorCode.MALFORMED, b"[" * 60_000),
        (ErrorCode.MALFORMED, line() + line()),
        (ErrorCode.MALFORMED, line()[:-1]),
        (ErrorCode.MALFORMED, b'{"version":1,"op":"status","op":"list"}'),
        (ErrorCode.MALFORMED, b'{"version":1,"op":"job_get","job":NaN}'),
        (ErrorCode.MALFORMED, b'{"version":1,"op":"job_get","job":' + b"9" * 5000 + b"}"),
        (ErrorCode.MALFORMED, b'{"version":1,"op":"status"}' + b" " * protocol.LINE_MAX),
        (ErrorCode.MALFORMED, line(version=...)),
        (ErrorCode.MALFORMED, line(version="1")),
        (ErrorCode.MALFORMED, line(version=True)),
        (ErrorCode.MALFORMED, line(op=...)),
        (ErrorCode.MALFORMED, line("status", job=7)),
        (ErrorCode.MALFORMED, line(more=1)),
        (ErrorCode.MALFORMED, line("lease_take", uid=None)),
        (ErrorCode.VERSION, line(version=2)),
        (ErrorCode.VERSION, line("of the future", version=2, more=1)),
        (ErrorCode.UNKNOWN_OP, line("job_destroy")),
        (ErrorCode.UNKNOWN_OP, line("__class__")),
        (ErrorCode.INVALID, line("login_enter", uid=1001, pid=1)),
        (ErrorCode.INVALID, line("login_prepare", uid=-1, pid=7)),
        (ErrorCode.INVALID, line("expose", name="web", port=65536)),
        (ErrorCode.INVALID, line(job=63 << 26)),
        (ErrorCode.INVALID, line(job=0)),
        (ErrorCode.INVALID, line(job=2**32 - 2)),
        (ErrorCode.INVALID, line(uid=-1)),
        (ErrorCode.INVALID, line(uid=2**32 - 1)),
        (ErrorCode.INVALID, line(user="")),
        (ErrorCode.INVALID, line(user="a b")),
        (ErrorCode.INVALID, line(name="x" * 1025)),
        (ErrorCode.INVALID, line(name="\ud800")),
        (ErrorCode.INVALID, line(nodes="")),
        (ErrorCode.INVALID, line(nodes="c[1-999999999]")),
        (ErrorCode.INVALID, line(nodes="../c1")),
        (ErrorCode.INVALID, line(driver="none")),
        (ErrorCode.INVALID, line(driver="PRIVATE")),
        (ErrorCode.INVALID, line(reservation="")),
        (ErrorCode.INVALID, line(timeout_s=0)),
        (ErrorCode.INVALID, line(timeout_s=601)),
        (ErrorCode.INVALID, line(timeout_s=1).replace(b'"timeout_s": 1', b'"timeout_s": 1e999')),
        (ErrorCode.INVALID, line("reserve", name="7")),
        (ErrorCode.INVALID, line("reserve", name="Web")),
        (ErrorCode.INVALID, line("reserve", name="a.b")),
        (ErrorCode.INVALID, line("reserve", name="a-")),
        (ErrorCode.MALFORMED, line("job_services", job=7)),
        (ErrorCode.MALFORMED, line("job_services", job=7, services={})),
        (ErrorCode.MALFORMED, line("job_services", job=7, services=[["10.96.0.9", "tcp", 80, 0]])),
        (ErrorCode.INVALID, line("job_services", job=7, services=[["10.96.0.9", "icmp", 80, 0, []]])),
        (ErrorCode.INVALID, line("trace", source="", target="b")),
        (ErrorCode.INVALID, line("trace", source="a\n", target="b")),
        (ErrorCode.INVALID, line("trace", source="a", target="b", protocol="sctp")),
        (ErrorCode.INVALID, line("trace", source="a", target="b", port=65536)),
    ],
)
def test_other_lines_are_refused_by_code(code, bad):
    assert refused(bad) == code


def test_longest_line_is_read():
    text = line("status")
    assert parse_request(text + b" " * (protocol.LINE_MAX - len(text))) == Status()


def test_job_name_of_any_bytes_is_read():
    assert parse_request(line(name="x").replace(b'"x"', b'"caf\xe9"')).name == "caf\ufffd"


@pytest.mark.parametrize(
    ("request_", "peer", "owner", "acts_for"),
    [
        (PREPARE, 0, None, 1001),
        (JobRelease(7), 0, None, None),
        (JobGet(7), 0, 1001, None),
        (JobGet(7), 0, None, None),
        (JobGet(7), 1001, 1001, 1001),
        (JobGet(7), 1002, None, 1002),
        (JobGet(7), 0, 0, None),
        (JobServices(7, {}), 0, 1001, None),
        (JobServices(7, {}), 1001, 1001, 1001),
        (LeaseTake(), 1001, None, 1001),
        (LeaseTake(1001), 1001, None, 1001),
        (LeaseTake(1001), 0, None, 1001),
        (LeaseTake(0), 0, None, 0),
        (Reserve("web"), 1001, None, 1001),
        (Status(), 1001, None, 1001),
        (Status(), 0, None, None),
        (List(), 1001, None, 1001),
        (Trace("a", "b"), 0, None, None),
        (Trace("a", "b"), 1001, None, 1001),
        (NodeForget("c1"), 0, None, None),
        (Rekey(), 0, None, None),
        (Metrics(), 0, None, None),
    ],
)
def test_right_is_for_root_and_for_oneself(request_, peer, owner, acts_for):
    assert authorise(request_, peer, owner) == acts_for


@pytest.mark.parametrize(
    ("request_", "peer", "owner", "code"),
    [
        (PREPARE, 1001, None, ErrorCode.FORBIDDEN),
        (JobRelease(7), 1001, 1001, ErrorCode.FORBIDDEN),
        (NodeForget("c1"), 1001, None, ErrorCode.FORBIDDEN),
        (Rekey(), 1001, None, ErrorCode.FORBIDDEN),
        (Metrics(), 1001, None, ErrorCode.FORBIDDEN),
        (LoginPrepare(1001, 7), 1001, None, ErrorCode.FORBIDDEN),
        (LoginEnter(1001, 7), 1001, None, ErrorCode.FORBIDDEN),
        (JobGet(7), 1002, 1001, ErrorCode.FORBIDDEN),
        (JobGet(7), 1002, 0, ErrorCode.FORBIDDEN),
        (JobServices(7, {}), 1002, 1001, ErrorCode.FORBIDDEN),
        (JobServices(7, {}), 1002, 0, ErrorCode.FORBIDDEN),
        *((kind(uid=1002), 1001, None, ErrorCode.FORBIDDEN) for kind in (LeaseTake, LeaseDrop)),
        *((kind(uid=0), 1001, None, ErrorCode.FORBIDDEN) for kind in (LeaseTake, LeaseDrop)),
        *((kind("web", 1002), 1001, None, ErrorCode.FORBIDDEN) for kind in (Reserve, Unreserve)),
        *((kind("web", 443, uid=1002), 1001, None, ErrorCode.FORBIDDEN) for kind in (Expose, Withdraw)),
        *((kind(), 0, None, ErrorCode.INVALID) for kind in (LeaseTake, LeaseDrop)),
        *((kind("web"), 0, None, ErrorCode.INVALID) for kind in (Reserve, Unreserve)),
    ],
)
def test_others_have_no_right(request_, peer, owner, code):
    with pytest.raises(RequestError) as caught:
        authorise(request_, peer, owner)
    assert caught.value.code == code


def test_reply_comes_back():
    written = protocol.accept({"leg": IPv4Address("10.64.0.1"), "jobs": [{"job": 7}]})
    assert json.loads(written) == {"version": 1, "ok": True, "leg": "10.64.0.1", "jobs": [{"job": 7}]}
    assert protocol.parse_reply(written) == {"leg": "10.64.0.1", "jobs": [{"job": 7}]}
    assert protocol.parse_reply(protocol.accept()) == {}


@pytest.mark.parametrize("code", ErrorCode)
def test_refusal_comes_back_as_an_error(code):
    written = protocol.refuse(code, "it is \u2603\nno")
    assert (written.count(b"\n"), json.loads(written)["error"]) == (1, {"code": code, "message": "it is \u2603\nno"})
    with pytest.raises(RequestError, match="it is") as caught:
        protocol.parse_reply(written)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "reply",
    [b"", b"{}", b'{"version":1}', b'{"version":1,"ok":1}', b'{"version":2,"ok":true}', protocol.refuse("x", "")],
)
def test_reply_that_is_none_is_reported(reply):
    with pytest.raises(RequestError, match=r"makes no sense.*see its log") as caught:
        protocol.parse_reply(reply)
    assert caught.value.code == ErrorCode.INTERNAL


def test_reply_holds_only_what_json_has():
    with pytest.raises(TypeError):
        protocol.accept({"when": object()})


SERVICES = protocol.encode_request(JobServices(7, {place(): answering("10.64.0.3:8080")}))


def test_long_request_reports_its_job_in_front():
    assert protocol.long_job(SERVICES) == 7
    assert protocol.long_job(b' { "version": 1 , "op" : "job_services", "job" : 8 , "services": [[') == 8


@pytest.mark.parametrize(
    "beginning",
    [
        b"x" * 5000,
        b" " * 5000,
        b'{"version":1,"op":"job_prepare","job":7,',
        b'{"version":1,"op":"job_services","services":[],"job":7,',
        b'{"version":2,"op":"job_services","job":7,',
        b'{"version":1,"op":"job_services","job":99999999999,',
        b'{"version":1,"op":"job_services","job":-7,',
        b"\xff\xfe" + SERVICES,
    ],
)
def test_other_long_requests_are_refused_by_their_beginning(beginning):
    with pytest.raises(RequestError) as caught:
        protocol.long_job(beginning)
    assert caught.value.code == ErrorCode.MALFORMED
