"""The record: whole or not there, of one run at a time, and refused when damaged."""

import json

import pytest

from isthmus.cloud.ownership import Record
from isthmus.cloud.recorded import Recorded
from isthmus.filters.errors import InputError
from isthmus.model.cloud import Kind, Made

RECORD = Record(
    "0a0b0c0d",
    "p1",
    {(Kind.SERVER, "hpc-c1"): "id1"},
    frozenset({(Kind.KEY_PAIR, "hpc-key")}),
    {"hpc-login": "1.2.3.4"},
    "RegionOne",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "openstack/record.json"


def test_record_is_read_as_it_was_written_and_private(path):
    with Recorded(path, dry=False) as recorded:
        assert recorded.load() is None
        recorded.save(RECORD)
    with Recorded(path, dry=False) as recorded:
        assert recorded.load() == RECORD
    assert path.stat().st_mode & 0o777 == 0o600


def test_check_mode_writes_nothing(path):
    with Recorded(path, dry=True) as recorded:
        recorded.save(RECORD)
        assert recorded.current == RECORD
    assert not path.parent.exists()


def test_second_run_at_once_is_refused(path):
    with Recorded(path, dry=False), pytest.raises(InputError, match="another run"), Recorded(path, dry=False):
        pass


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"schema": 2}), json.dumps({"schema": 1, "made": 3})])
def test_damaged_record_is_refused(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with Recorded(path, dry=False) as recorded, pytest.raises(InputError, match=r"record\.json"):
        recorded.load()


def test_what_was_made_is_begun_no_more():
    made = RECORD.with_made([Made(Kind.KEY_PAIR, "hpc-key", "fp")])
    assert made.begun == frozenset()
    assert made.without([(Kind.KEY_PAIR, "hpc-key"), (Kind.SERVER, "hpc-c1")]).made == {}
