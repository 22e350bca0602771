"""Files of snapshots: order, wholeness, how many."""

import pytest

from isthmus.controlplane.data import snapshots
from isthmus.controlplane.data.snapshots import Snapshot


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("000002-0000000000000070.db", Snapshot(2, 70)),
        ("000002-0000000000000070-final.db", Snapshot(2, 70, True)),
        (".new-x", None),
        ("000002-0000000000000070.db.part", None),
        ("", None),
    ],
)
def test_names(name, wanted):
    assert Snapshot.parse(name) == wanted
    if wanted:
        assert wanted.name == name


def test_order_is_generation_revision_final():
    ordered = [Snapshot(1, 9), Snapshot(2, 1), Snapshot(2, 2), Snapshot(2, 2, True), Snapshot(2, 10)]
    assert sorted(reversed(ordered)) == ordered
    # A listing of the folder has the same order.
    assert sorted(each.name for each in ordered[:2]) == [each.name for each in ordered[:2]]


def test_published_is_whole_and_the_owners_alone(tmp_path):
    folder = tmp_path / "snapshots"
    assert snapshots.publish(folder, Snapshot(1, 1), lambda file: file.write(b"all")) == 3
    (path,) = folder.iterdir()
    assert path.read_bytes() == b"all"
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert snapshots.listed(folder) == [Snapshot(1, 1)]


def broken(file):
    file.write(b"half")
    raise OSError("no space")


def refused():
    raise OSError("others went on")


@pytest.mark.parametrize(("write", "check"), [(broken, lambda: None), (lambda file: 0, refused)])
def test_what_is_not_whole_or_not_allowed_leaves_nothing(tmp_path, write, check):
    with pytest.raises(OSError, match=r"no space|others went on"):
        snapshots.publish(tmp_path, Snapshot(1, 1), write, check)
    assert list(tmp_path.iterdir()) == []


def test_prune_removes_others_and_halves_and_nothing_else(tmp_path):
    for name in (Snapshot(1, 1).name, Snapshot(1, 2).name, ".new-abc", "mine.txt"):
        (tmp_path / name).touch()
    snapshots.prune(tmp_path, [Snapshot(1, 2)])
    assert {path.name for path in tmp_path.iterdir()} == {Snapshot(1, 2).name, "mine.txt"}


def test_folder_that_is_not_there_has_none(tmp_path):
    assert snapshots.listed(tmp_path / "none") == []
