"""Whatever is written to the network daemon's socket is a request or refused by name, and nobody gets another's right.

Random mutations of valid lines are in tests/unit/network/test_protocol_fuzz.py; here requests are built, and shrunk.
"""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.network.api import protocol
from isthmus.network.api.messages import (
    OPS,
    ErrorCode,
    JobGet,
    JobPrepare,
    JobRelease,
    JobServices,
    Metrics,
    NodeForget,
)
from isthmus.network.api.protocol import RequestError, authorise, long_job, parse_request, refuse
from isthmus.network.api.server import SHORT_MAX
from tests.unit.network.test_protocol import REQUESTS

OWNER, STRANGER = 1001, 1002
FIELDS = sorted({name for request in REQUESTS for name in json.loads(protocol.encode_request(request))} | {"x", ""})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=3)
)
VALID = st.sampled_from([json.loads(protocol.encode_request(request)) for request in REQUESTS])
ROWS = st.lists(
    st.tuples(
        st.ip_addresses(v=4).map(str) | st.text(max_size=20),
        st.sampled_from(["tcp", "udp", "icmp", ""]),
        st.integers(-1, 70_000),
        st.integers(-1, 100_000),
        st.lists(st.from_regex(r"[0-9.]{7,15}:[0-9]{1,6}", fullmatch=True) | st.text(max_size=20), max_size=4),
    ).map(list)
    | VALUES,
    max_size=4,
)


@st.composite
def requests(draw):
    """A request with some fields of other values, new, or gone."""
    reported = dict(draw(VALID))
    reported |= draw(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=2))
    if reported.get("op") == "job_services" and draw(st.booleans()):
        reported["services"] = draw(ROWS)
    for name in draw(st.lists(st.sampled_from(sorted(reported)), max_size=1)):
        reported.pop(name)
    return json.dumps(reported).encode()


def judged(line, peer):
    """Return what becomes of a line: the request that is allowed, or the code of the refusal."""
    try:
        request = parse_request(line)
        authorise(request, peer, OWNER)
    except RequestError as error:
        written = refuse(error.code, str(error))
        assert (written.count(b"\n"), len(written) < 2000) == (1, True)
        return error.code
    return request


@given(requests() | st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()))
@example(b'{"version":1,"op":"job_services","job":7,"services":[[[]]]}')
@example(b'{"version":1,"op":"reserve","name":"x","uid":1e400}')
@example(b'{"version":1,"op":"job_get","job":7,"job":8}')
@example(b"\xff\xfe{\x00}\x00")
def test_line_is_a_request_or_refused(line):
    reported = judged(line, 0)
    if type(reported) in OPS.values():
        assert parse_request(protocol.encode_request(reported)) == reported
    else:
        assert reported in {ErrorCode.MALFORMED, ErrorCode.INVALID, ErrorCode.VERSION, ErrorCode.UNKNOWN_OP}


@given(requests())
@example(b'{"version":1,"op":"lease_take","uid":0}')
@example(b'{"version":1,"op":"lease_take","uid":1001}')
def test_stranger_gets_no_right(line):
    reported = judged(line, STRANGER)
    assert not isinstance(reported, JobPrepare | JobRelease | Metrics | NodeForget | JobGet | JobServices)
    assert getattr(reported, "uid", None) in (None, STRANGER)


@given(requests())
def test_long_request_that_is_let_through_is_of_the_job_that_it_says(line):
    # As a user sends it: more than SHORT_MAX, of which the beginning is read.
    padded = line + b" " * SHORT_MAX
    try:
        job = long_job(padded[:SHORT_MAX])
    except RequestError:
        return
    reported = judged(padded, 0)
    # A second `job` behind the first is no request at all.
    assert not isinstance(reported, JobServices) or reported.job == job
