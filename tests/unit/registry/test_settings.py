"""Accounts come from the playbook's file, which may change at any moment."""

import json
import os
from base64 import b64encode

import pytest

from isthmus.registry.settings import Current, SettingsError, read

HASH = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"  # of "alice" and "bob"
FILE = {"schema": 1, "service": "ctl:5000", "keeper": "isthmus", "reserve_bytes": 1, "accounts": {}}


def write(path, **changes):
    path.with_suffix(".new").write_text(json.dumps(FILE | changes))
    path.with_suffix(".new").replace(path)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "tokend.json"
    write(found, accounts={"alice": {"sha256": HASH, "quota_bytes": 5}})
    return found


def header(text, scheme="Basic"):
    return f"{scheme} {b64encode(text).decode()}"


@pytest.mark.parametrize(
    "authorization",
    [
        *("", "Basic", "Basic !", "Bearer x", "Basic \xe9", header(b"alice:alice", "Digest")),
        *(header(text) for text in (b"alice:wrong", b"alice:", b"alice", b"bob:alice", b":alice", b"\xff:\xff")),
    ],
)
def test_other_header_lets_nobody_in(path, authorization):
    assert read(path).known(authorization) == ""


def test_password_lets_its_account_in(path):
    assert read(path).known(header(b"alice:alice")) == "alice"
    assert read(path).known(header(b"alice:alice", "basic")) == "alice"


def test_changed_file_counts_at_once(path):
    current = Current(path)
    write(path, accounts={})
    assert not current().accounts


def test_file_that_cannot_be_used_leaves_what_was(path, caplog):
    current = Current(path)
    path.write_text("{")
    os.utime(path, (0, 0))
    assert set(current().accounts) == {"alice"}
    assert "what was there before still holds" in caplog.text
    path.unlink()
    assert set(current().accounts) == {"alice"}


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"schema": 2}', json.dumps(FILE | {"accounts": {"a": {}}})])
def test_start_without_usable_settings_is_refused_with_a_remedy(path, content):
    path.write_text(content)
    with pytest.raises(SettingsError, match=r"playbooks/apptainer\.yml"):
        Current(path)
