"""The module host_files: what differs is written, what does not is left, and a check run writes nothing."""

import os
from pathlib import Path

import pytest

from tests.support import ansible_modules

OWN = {"owner": str(os.getuid()), "group": str(os.getgid())}


@pytest.fixture
def bring(tmp_path):
    """Run the module on entries below tmp_path; returns its result."""
    module = ansible_modules.load("library/host_files.py")

    def call(*entries, check=False):
        files = [OWN | entry | {"path": str(tmp_path / entry["path"])} for entry in entries]
        return ansible_modules.run(module, files=files, _ansible_check_mode=check)

    return call


def mode(path):
    return path.stat().st_mode & 0o777


def test_entries_are_made_once_and_reported(bring, tmp_path):
    entries = (
        {"path": "folder", "state": "directory"},
        {"path": "folder/secret", "content": "s", "mode": "0600"},
        {"path": "folder/plain", "content": ""},
        {"path": "link", "state": "link", "target": "folder/plain"},
        {"path": "none", "state": "absent"},
    )
    first, again = bring(*entries), bring(*entries)
    assert [Path(path).name for path in first["paths"]] == ["folder", "secret", "plain", "link"]
    assert (again["changed"], again["paths"]) == (False, [])
    assert (tmp_path / "folder/secret").read_text() == "s"
    assert [mode(tmp_path / each) for each in ("folder", "folder/secret", "folder/plain")] == [0o755, 0o600, 0o644]
    assert (tmp_path / "link").readlink() == Path("folder/plain")


def test_check_run_reports_and_writes_nothing(bring, tmp_path):
    (tmp_path / "old").write_text("1")
    (tmp_path / "gone").mkdir()
    changes = (
        {"path": "old", "content": "2"},
        {"path": "new", "content": "2"},
        {"path": "folder", "state": "directory"},
        {"path": "gone", "state": "absent"},
        {"path": "link", "state": "link", "target": "old"},
    )
    assert len(bring(*changes, check=True)["paths"]) == len(changes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gone", "old"]
    assert (tmp_path / "old").read_text() == "1"


def test_mode_alone_is_corrected(bring, tmp_path):
    entry = {"path": "secret", "content": "s", "mode": "0600"}
    bring(entry)
    (tmp_path / "secret").chmod(0o644)
    assert bring(entry)["changed"]
    assert mode(tmp_path / "secret") == 0o600


@pytest.mark.parametrize("content", ["new", "mine"])
def test_link_in_place_of_a_file_is_replaced_not_followed(bring, tmp_path, content):
    (tmp_path / "other").write_text("mine")
    (tmp_path / "file").symlink_to("other")
    assert bring({"path": "file", "content": content})["changed"]
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "other").read_text() == "mine"


def test_file_has_its_mode_before_its_name(bring, tmp_path, monkeypatch):
    modes, replace = [], Path.replace

    def watched(path, target):
        modes.append(mode(path))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watched)
    bring({"path": "file", "content": "x", "mode": "0640"})
    assert modes == [0o640]


def test_link_that_leads_elsewhere_is_made_again(bring, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert bring({"path": "link", "state": "link", "target": "there"})["changed"]
    assert (tmp_path / "link").readlink() == Path("there")


def test_folder_is_removed_with_all_in_it(bring, tmp_path):
    (tmp_path / "folder/below").mkdir(parents=True)
    assert bring({"path": "folder", "state": "absent"})["changed"]
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"path": "folder", "content": "x"}, "is a folder; move it away"),
        ({"path": "folder", "state": "link", "target": "x"}, "is a folder; move it away"),
        ({"path": "file", "state": "directory"}, "is no folder; move it away"),
        ({"path": "none/file", "content": "x"}, "none"),
        ({"path": "file"}, "content"),
    ],
)
def test_what_is_in_the_way_is_reported_and_kept(bring, tmp_path, entry, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    reported = bring(entry)
    assert reported["failed"]
    assert message in reported["msg"]
    assert (tmp_path / "folder").is_dir()
    assert (tmp_path / "file").read_text() == "mine"


def test_empty_owner_leaves_it_to_whoever_runs_it(bring, tmp_path):
    made = bring({"path": "own", "content": "", "owner": "", "group": ""})
    assert (made["changed"], (tmp_path / "own").stat().st_uid) == (True, os.getuid())
    assert not bring({"path": "own", "content": "", "owner": "", "group": ""})["changed"]
