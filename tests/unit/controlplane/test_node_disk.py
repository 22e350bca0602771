"""The folder on a node's disk: nobody else's, and nothing of clusters that are gone."""

import fcntl
import os

import pytest

from isthmus.controlplane.data import node_disk
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout


@pytest.fixture
def layout(tmp_path):
    return Layout(tmp_path / "home/cluster")


@pytest.fixture
def parent(tmp_path):
    made = tmp_path / "disk"
    made.mkdir()
    made.chmod(0o1777)
    return made


def test_folder_is_the_owners_alone_and_the_same_each_time(layout, parent, tmp_path):
    disk = node_disk.of(layout, parent)
    assert disk.folder.stat().st_mode & 0o777 == 0o700
    assert node_disk.of(layout, parent) == disk
    assert layout.disk_name.stat().st_mode & 0o777 == 0o600
    assert layout.disk_name.read_text() in disk.folder.name
    assert node_disk.of(Layout(tmp_path / "other"), parent) != disk
    assert {path.name for path in layout.folder.iterdir()} == {"disk-name"}


def as_link(folder):
    folder.rename(f"{folder}.away")
    folder.symlink_to(f"{folder}.away")


def as_file(folder):
    folder.rmdir()
    folder.touch(mode=0o700)


def as_open(folder):
    folder.chmod(0o750)


def as_anothers(folder):
    os.chown(folder, 4711, 4711)


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (as_link, "is not yours"),
        (as_file, "is not yours"),
        (as_open, "is open to others"),
        pytest.param(as_anothers, "is not yours", marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root")),
    ],
)
def test_folder_that_another_may_have_made_is_refused(layout, parent, attack, message):
    folder = node_disk.of(layout, parent).folder
    attack(folder)
    with pytest.raises(ControlPlaneError, match=f"{message}.*`isthmus up --data home`"):
        node_disk.of(layout, parent)
    assert node_disk.remove(layout, parent) == []
    assert os.path.lexists(folder)


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_place_where_others_rename_is_refused(layout, parent, mode):
    parent.chmod(mode)
    with pytest.raises(ControlPlaneError, match="lets others rename your files"):
        node_disk.of(layout, parent)


def test_place_that_is_not_there_is_reported(layout, tmp_path):
    with pytest.raises(ControlPlaneError, match="No such file or directory; `isthmus up --data home`"):
        node_disk.of(layout, tmp_path / "scratch")


def test_broken_name_is_reported(layout, parent):
    layout.folder.mkdir(parents=True)
    layout.disk_name.write_text("../x")
    with pytest.raises(ControlPlaneError, match="is no name; remove it"):
        node_disk.of(layout, parent)


@pytest.fixture
def old(parent, tmp_path):
    """What a cluster that is gone left."""
    made = node_disk.of(Layout(tmp_path / "old"), parent)
    made.etcd.mkdir()
    return made


def test_sweep_removes_what_is_left_and_nothing_else(layout, parent, old):
    disk = node_disk.of(layout, parent)
    (parent / f"isthmus-{os.getuid()}-link").symlink_to(parent)
    (parent / "isthmus-4711-x").mkdir()
    assert node_disk.sweep(parent, but=disk) == [old.folder]
    assert {path.name for path in parent.iterdir()} == {
        disk.folder.name,
        f"isthmus-{os.getuid()}-link",
        "isthmus-4711-x",
    }


def test_sweep_leaves_what_is_written_to(parent, old):
    held = os.open(old.folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert node_disk.sweep(parent, but=None) == []
    os.close(held)
    assert node_disk.sweep(parent, but=None) == [old.folder]


def test_remove_takes_ones_own(layout, parent, old):
    assert node_disk.remove(layout, parent) == []
    disk = node_disk.of(layout, parent)
    assert node_disk.remove(layout, parent) == [disk.folder]
    assert old.folder.exists()


def test_data_belong_to_the_claim_of_their_stamp(layout, parent):
    disk = node_disk.of(layout, parent)
    assert not disk.belongs_to("a")
    disk.stamp.write_text("a")
    assert not disk.belongs_to("a")
    (disk.etcd / "member").mkdir(parents=True)
    assert (disk.belongs_to("a"), disk.belongs_to("b")) == (True, False)
