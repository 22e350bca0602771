"""Secrets of the deployer."""

import os

import pytest

from isthmus.filters.trust import secrets


def mode(path):
    return path.stat().st_mode & 0o777


def test_secret_is_its_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        secrets.make(str(tmp_path / "new/one.password"), 64)
    finally:
        os.umask(before)
    made = tmp_path / "new/one.password"
    assert (mode(made.parent), mode(made)) == (0o700, 0o600)
    assert made.read_text().isalnum()
    assert len(made.read_text()) == 64
    assert os.listdir(made.parent) == ["one.password"]


def test_secrets_differ(tmp_path):
    for name in "ab":
        secrets.make(str(tmp_path / name))
    assert (tmp_path / "a").read_text() != (tmp_path / "b").read_text()


def test_secret_that_is_there_stays(tmp_path):
    (tmp_path / "one").write_text("kept")
    secrets.make(str(tmp_path / "one"))
    assert (tmp_path / "one").read_text() == "kept"
    assert os.listdir(tmp_path) == ["one"]


def test_lacking_are_those_that_are_not_there(tmp_path):
    (tmp_path / "one").write_text("kept")
    files = [str(tmp_path / name) for name in ("one", "two")]
    assert secrets.lacking(files) == files[1:]


def test_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError):
        secrets.make(str(tmp_path / "file/one"))
