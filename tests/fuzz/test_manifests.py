"""Manifests, indexes and configurations of strangers: each is understood, or refused with a message."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.images import manifests
from isthmus.images.errors import ImageError
from isthmus.model.images import is_digest, parse

IMAGE = parse("ctl:5000/isthmus/busybox")
GOOD = "sha256:" + "0" * 64
# The names that are looked at, and values of every kind in their places.
INDEX = ("manifests", "platform", "os", "architecture", "digest", "size", "layers", "urls", "annotations", "mediaType")
NAMES = st.sampled_from([*INDEX, "config", "Env", "Cmd", "Entrypoint", "User", "WorkingDir"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from([GOOD, GOOD + "\n", "sha256:" + "../" * 21, "amd64", "linux", "A=\x00", "\ud800", "a\nb"]),
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=5)),
    max_leaves=25,
)
TEXTS = st.one_of(DOCUMENTS.map(json.dumps), st.text(max_size=60))
DEEP = "[" * 100_000


@given(TEXTS)
@example(DEEP)
@example('{"manifests":' * 50_000)
@example(json.dumps({"manifests": {"digest": GOOD}}))
@example(json.dumps({"manifests": [None]}))
@example(json.dumps({"manifests": [{"platform": []}]}))
@example(json.dumps({"manifests": [{"platform": ["linux"], "digest": GOOD}]}))
@example(json.dumps({"manifests": [{"platform": {"architecture": {}}, "digest": GOOD}]}))
@example(json.dumps({"manifests": [{"platform": {"architecture": "\ud800\n"}, "digest": GOOD}]}))
@example("9" * 5000)
def test_digest_is_one_or_the_image_is_refused(text):
    with suppress(ImageError):
        assert is_digest(manifests.digest(IMAGE, text, "amd64"))


@given(TEXTS)
@example(DEEP)
@example(json.dumps({"config": {"Env": "A=1"}}))
@example(json.dumps({"config": {"Env": [1]}}))
@example(json.dumps({"config": {"Cmd": {"a": "b"}, "User": 0}}))
@example(json.dumps({"config": {"WorkingDir": ["/"]}}))
def test_configuration_can_be_started_or_is_refused(text):
    with suppress(ImageError):
        found = manifests.config(IMAGE, text)
        lists = [found.get(name) or [] for name in ("Entrypoint", "Cmd", "Env")]
        words = [*(word for each in lists for word in each), found.get("User", ""), found.get("WorkingDir", "")]
        assert not [word for word in words if b"\0" in word.encode()]


@given(TEXTS)
@example(DEEP)
@example(json.dumps({"layers": {"0": {}}}))
@example(json.dumps({"layers": [[]]}))
def test_layers_are_looked_at_or_refused(text):
    with suppress(ImageError):
        manifests.layers(IMAGE, text)


@pytest.mark.parametrize(
    ("check", "document", "reported"),
    [
        (manifests.layers, {"layers": [{}] * 513}, "more than 512"),
        (manifests.layers, {"layers": [{"urls": ["http://169.254.169.254/"]}]}, "an address of its own"),
        (manifests.config, {"config": {"Env": ["A=" + "x" * (1 << 20)]}}, "more than 1048576 bytes"),
        (manifests.config, {"config": {"Cmd": ["a\0b"]}}, "makes no sense; ask"),
    ],
)
def test_hostile_document_is_refused(check, document, reported):
    with pytest.raises(ImageError, match=reported):
        check(IMAGE, json.dumps(document))
