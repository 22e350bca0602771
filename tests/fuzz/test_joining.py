"""Whatever is sent to the service that lets nodes join is a request, or refused by name."""

import contextlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.node import certificates, tokens
from isthmus.node.certificates import CertificateError
from isthmus.node.errors import RefusedError
from isthmus.node.manifest import ManifestError, parse
from isthmus.node.messages import MessageError, Request, read_request
from isthmus.node.seal import SealError, seal
from tests.support.fakes.join_controller import MANIFEST

REQUEST = json.loads(Request("c3", "0" * 16, "a" * 12, "s" * 43, "csr", "seal", False).written())
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3)
)
CSR = certificates.request(certificates.make_key())


def changed(whole):
    """Objects with some fields of other values, new, or gone."""
    names = st.sampled_from([*whole, "x", ""])
    return st.tuples(st.dictionaries(names, VALUES, max_size=3), st.sets(names, max_size=1)).map(
        lambda both: {key: value for key, value in (whole | both[0]).items() if key not in both[1]}
    )


@given(st.binary(max_size=300) | (changed(REQUEST) | VALUES).map(lambda reported: json.dumps(reported).encode()))
@example(b"\xff")
@example(b'{"schema": 1e400}')
def test_bytes_are_a_request_or_refused(text):
    try:
        found = read_request(text)
    except MessageError as error:
        assert str(error)
    else:
        assert "/" not in found.name + found.token
        assert "\n" not in found.name + found.token + found.release


@given(st.integers(0, len(CSR) - 1), st.binary(max_size=4), st.binary(max_size=200))
def test_bytes_are_a_certificate_request_or_refused(place, put, instead):
    for text in (CSR[:place] + put + CSR[place + len(put) :], instead):
        try:
            asked = certificates.requested(text)
        except CertificateError:
            continue
        assert len(certificates.key_id(asked)) == 64


@given(st.text() | st.from_regex(r"isthmus1\.[0-9a-f]{11,13}\.[A-Za-z0-9_-]{42,44}\.[0-9a-f]{63,65}"))
def test_text_is_a_token_or_refused(text):
    with contextlib.suppress(RefusedError):
        assert str(tokens.parse(text)) == text.strip()


@given(st.binary(max_size=64))
def test_bytes_are_a_key_to_seal_to_or_refused(key):
    with contextlib.suppress(SealError):
        assert seal(b"x", key, b"")


@given((changed(MANIFEST) | VALUES).map(json.dumps) | st.text(max_size=50))
def test_text_is_a_manifest_or_refused(text):
    with contextlib.suppress(ManifestError):
        assert parse(text).schema == 1
