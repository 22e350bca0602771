"""What a user has on the registry's disk is counted, and counted again only where it changed."""

import os
import time

import pytest

from isthmus.registry import storage
from isthmus.registry.clean import Cleaner
from isthmus.registry.storage import Folders, Storage
from tests.support.files.registry_disk import RegistryDisk


@pytest.fixture
def disk(tmp_path):
    return RegistryDisk(tmp_path)


def test_blob_counts_once_for_its_user_and_for_each_user(disk):
    layer = disk.blob(b"x" * 1000)
    for repository in ("alice/a", "alice/b", "bob/c"):
        disk.link(repository, layer)
    for user, repositories in (("alice", 2), ("bob", 1), ("carol", 0)):
        usage = Storage(disk.root).usage(user)
        assert usage.size_bytes == (1000 if repositories else 0)
        assert usage.entries == 2 * repositories


def test_repository_below_another_counts(disk):
    for repository in ("alice", "alice/a", "alice/a/b"):
        disk.link(repository, disk.blob(repository.encode()))
    assert [Storage(disk.root).name(each) for each in Storage(disk.root).repositories("alice")] == [
        "alice",
        "alice/a",
        "alice/a/b",
    ]
    assert Storage(disk.root).usage("alice").size_bytes == len("alice" + "alice/a" + "alice/a/b")


def test_upload_under_way_counts_with_its_notes(disk):
    disk.upload("alice/a", "1", b"x" * 5000, notes=3)
    usage = Storage(disk.root).usage("alice")
    assert usage.size_bytes >= 5000
    assert usage.entries == 1 + 1 + 3


def test_history_of_a_tag_counts(disk):
    digests = [disk.image("alice/a", "latest", str(number).encode()) for number in range(3)]
    counted = Storage(disk.root).usage("alice").entries
    assert counted == 1 + 1 + 3 * 2 + 1 + 3  # repository, config, layers and manifests, tag, what it named
    assert Storage(disk.root).tags(disk.repository("alice/a")) == {"latest": digests[-1]}
    assert Storage(disk.root).manifests(disk.repository("alice/a")) == sorted(digests)


def test_what_was_deleted_counts_until_it_is_cleaned(disk):
    found = disk.image("alice/a", "1", b"x" * 10_000)
    disk.delete("alice/a", found)
    counter = Storage(disk.root)
    assert counter.usage("alice").size_bytes > 10_000
    assert Cleaner(disk.root).clean() == 3
    assert counter.usage("alice") == storage.Usage()
    assert not disk.repository("alice/a").exists()


def test_change_is_seen_at_once_and_rest_is_not_read_again(disk, monkeypatch):
    layer = disk.blob(b"one")
    disk.link("alice/a", layer)
    disk.rest()
    counter, listed = Storage(disk.root), []
    assert counter.usage("alice").size_bytes == 3
    real = os.listdir
    monkeypatch.setattr(storage.os, "listdir", lambda path: listed.append(path) or real(path))
    assert counter.usage("alice").size_bytes == 3
    assert not [path for path in listed if "_uploads" not in str(path)]
    disk.link("alice/a", disk.blob(b"three"))
    assert counter.usage("alice").size_bytes == 8
    assert len([path for path in listed if "_layers" in str(path)]) == 1


def test_folder_that_has_just_changed_is_not_trusted(tmp_path):
    """Two changes within a tick of the clock bear the same time."""
    folders, now_s = Folders(), time.time()
    (tmp_path / "a").mkdir()
    os.utime(tmp_path, (now_s, now_s))
    assert folders.names(tmp_path) == ("a",)
    (tmp_path / "b").mkdir()
    os.utime(tmp_path, (now_s, now_s))
    assert set(folders.names(tmp_path)) == {"a", "b"}


def test_user_without_anything_has_nothing(disk):
    assert Storage(disk.root).usage("nobody") == storage.Usage()
    assert Storage(disk.root).free_bytes() > 0


def test_link_on_the_disk_is_not_followed(disk, tmp_path):
    disk.link("alice/a", disk.blob(b"x"))
    (disk.repository("alice/a").parent / "loop").symlink_to(tmp_path)
    assert Storage(disk.root).usage("alice").size_bytes == 1
