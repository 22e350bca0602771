"""PodGroups that 1.36 stored, as 1.37 reads them; numbers of fields are those of both releases' generated.proto."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as some

from isthmus.controlplane.versions import stored
from isthmus.controlplane.versions.stored import StoredError


def message(*fields):
    """Write fields (number, value); texts and messages are shorter than 128 bytes."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += bytes([number << 3, value])
        else:
            text = value.encode() if isinstance(value, str) else value
            made += bytes([number << 3 | 2, len(text)]) + text
    return made


META = message((1, "own"), (3, "default"), (5, "uid"))
GANG = message((2, message((1, 3))))
STATUS = message((1, "a condition"))
TEMPLATE = message((1, "work"), (2, "workers"))


def kept(version, spec, kind="PodGroup"):
    type_ = message((1, f"scheduling.k8s.io/{version}"), (2, kind))
    raw = message((1, META), (2, spec), (3, STATUS))
    return b"k8s\0" + message((1, type_), (2, raw), (3, ""), (4, ""))


BEFORE = kept(
    "v1alpha2",
    message(
        (1, message((1, TEMPLATE))), (2, GANG), (3, "topology"), (4, "a"), (4, "b"), (5, "Pod"), (6, "high"), (7, 9)
    ),
)
SINCE = message((2, TEMPLATE), (3, GANG), (4, "topology"), (5, "a"), (5, "b"), (7, "high"), (8, 9))


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_group_has_the_numbers_of_the_next_release(version):
    after = stored.rewritten(BEFORE, version)
    assert after == kept(version, SINCE)
    assert stored.rewritten(after, version) == after


def test_workload_has_the_same_numbers_in_both():
    assert stored.rewritten(kept("v1alpha2", GANG, "Workload"), "v1beta1") == kept("v1beta1", GANG, "Workload")


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (BEFORE, "v1alpha2"),
        (BEFORE, ""),
        (BEFORE, "v1"),
        (kept("v1beta1", SINCE), "v1beta1"),
        (BEFORE.replace(b"scheduling.k8s.io", b"scheduling.x-k8s."), "v1beta1"),
    ],
)
def test_what_is_read_as_it_is_stays(value, version):
    assert stored.rewritten(value, version) == value


@given(some.integers(0, len(BEFORE) - 1), some.binary(max_size=8))
def test_value_that_was_cut_off_or_spoilt_is_an_error_or_stays_a_value(place, noise):
    for value in (BEFORE[:place], BEFORE[:place] + noise + BEFORE[place + len(noise) :], noise):
        try:
            assert stored.rewritten(value, "v1beta1").startswith(b"k8s\0")
        except StoredError:
            continue


class Etcd:
    """What was stored; a key of `moving` changes meanwhile."""

    def __init__(self, moving="", **found):
        self.found, self.moving, self.written = found, moving, {}

    def call(self, path, body):
        if path == "kv/range":
            at = b64decode(body["key"]).decode()
            rows = [(f"{at}{name}", value) for name, value in self.found.items() if "podgroups" in at]
            return {
                "kvs": [
                    {"key": code(key), "value": b64encode(each).decode(), "mod_revision": "7"} for key, each in rows
                ]
            }
        (compared,), (put,) = body["compare"], body["success"]
        assert (path, compared["mod_revision"], compared["key"]) == ("kv/txn", "7", put["request_put"]["key"])
        key = b64decode(compared["key"]).decode().rpartition("/")[2]
        if key == self.moving:
            return {}
        self.written[key] = b64decode(put["request_put"]["value"])
        return {"succeeded": True}


def code(text):
    return b64encode(text.encode()).decode()


def test_only_what_changes_is_written_and_what_is_no_group_stays(caplog):
    etcd = Etcd(a=BEFORE, b=b"{}", c=kept("v1beta1", SINCE), d=BEFORE, moving="d")
    assert stored.rewrite(etcd, "v1beta1") == 1
    assert etcd.written == {"a": kept("v1beta1", SINCE)}
    assert [record.getMessage() for record in caplog.records] == [
        "/registry/podgroups/b: it is not stored as Kubernetes does"
    ]
