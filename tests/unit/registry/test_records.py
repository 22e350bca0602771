"""What owners say stays said, whatever happens to the disk."""

import json

import pytest

from isthmus.model.registry import PRIVATE, Access, Readers, RegistryMessageError, read_access, write_access
from isthmus.registry import records
from isthmus.registry.records import Records, RecordsError
from isthmus.support import durable

SITE = Access(Readers.SITE)
BOB = Access(Readers.USERS, frozenset({"bob"}))


def test_nothing_said_is_private(tmp_path):
    assert Records(tmp_path).access("alice/x") == PRIVATE


def test_what_was_said_outlives_a_restart(tmp_path):
    Records(tmp_path).keep("alice/x", BOB)
    Records(tmp_path).keep("alice/y", SITE)
    again = Records(tmp_path)
    assert again.of("alice") == {"alice/x": BOB, "alice/y": SITE}
    assert again.shared_with("bob") == ["alice/x", "alice/y"]
    assert again.shared_with("carol") == ["alice/y"]
    assert not again.shared_with("alice")
    again.keep("alice/y", PRIVATE)
    assert Records(tmp_path).of("alice") == {"alice/x": BOB}


def test_file_is_its_owners_alone(tmp_path):
    Records(tmp_path).keep("alice/x", BOB)
    assert (tmp_path / "alice.json").stat().st_mode & 0o777 == 0o600


def test_failed_write_changes_nothing(tmp_path, monkeypatch):
    kept = Records(tmp_path)
    kept.keep("alice/x", BOB)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write", full)
    with pytest.raises(RecordsError, match="nothing was changed"):
        kept.keep("alice/x", SITE)
    assert kept.access("alice/x") == BOB


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"schema": 2, "repositories": {}}',
        json.dumps({"schema": 1, "repositories": {"bob/x": write_access(SITE)}}),
        json.dumps({"schema": 1, "repositories": {"alice/x": {"readers": "all"}}}),
    ],
)
def test_damaged_record_makes_all_private_and_stays_for_the_admin(tmp_path, content, caplog):
    (tmp_path / "alice.json").write_text(content)
    kept = Records(tmp_path)
    assert kept.access("alice/x") == PRIVATE
    assert "is private until it is mended or removed" in caplog.text
    with pytest.raises(RecordsError, match="must mend or remove"):
        kept.keep("alice/x", SITE)
    assert (tmp_path / "alice.json").read_text() == content
    kept.keep("bob/x", SITE)


def test_owner_shares_a_bounded_number(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST", 2)
    kept = Records(tmp_path)
    for name in ("alice/1", "alice/2", "alice/3"):
        if name == "alice/3":
            with pytest.raises(RecordsError, match="make some private first"):
                kept.keep(name, SITE)
        else:
            kept.keep(name, SITE)


@pytest.mark.parametrize("access", [PRIVATE, SITE, BOB])
def test_access_is_read_as_written(access):
    assert read_access(write_access(access)) == access


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"readers": "all"},
        {"readers": "users"},
        {"readers": "users", "users": []},
        {"readers": "users", "users": "bob"},
        {"readers": "users", "users": [1]},
        {"readers": "site", "users": ["bob"]},
        {"readers": "users", "users": [str(number) for number in range(65)]},
        {"readers": "site", "more": 1},
    ],
)
def test_access_that_is_none_is_refused(said):
    with pytest.raises(RegistryMessageError):
        read_access(said)
