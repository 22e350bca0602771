"""What no image needs goes, what one needs stays, and what cannot be understood stays too."""

import pytest

from isthmus.registry.clean import Cleaner
from tests.support.files.registry_disk import RegistryDisk


@pytest.fixture
def disk(tmp_path):
    return RegistryDisk(tmp_path)


def test_image_stays_whole(disk):
    found = disk.image("alice/a", "1", b"layer")
    index = disk.manifest("alice/a", "all", {"manifests": [{"digest": found}]})
    before = disk.linked("alice/a")
    assert Cleaner(disk.root).clean() == 0
    assert disk.linked("alice/a") == before
    assert {found, index} <= before


def test_layer_without_an_image_goes(disk):
    disk.image("alice/a", "1", b"layer")
    before = disk.linked("alice/a")
    disk.link("alice/a", disk.blob(b"of no image"))
    assert Cleaner(disk.root).clean() == 1
    assert disk.linked("alice/a") == before


def test_layer_that_another_image_has_stays(disk):
    first = disk.image("alice/a", "1", b"layer")
    disk.image("alice/a", "2", b"layer", config=b"other")
    disk.delete("alice/a", first)
    Cleaner(disk.root).clean()
    assert disk.digest(b"layer") in disk.linked("alice/a")
    assert first not in disk.linked("alice/a")


def test_history_of_a_tag_forgets_what_was_deleted(disk):
    first = disk.image("alice/a", "1", b"one")
    disk.image("alice/a", "1", b"two")
    disk.delete("alice/a", first)
    Cleaner(disk.root).clean()
    index = disk.repository("alice/a") / "_manifests/tags/1/index/sha256"
    assert [path.name for path in index.iterdir()] == [disk.current("alice/a", "1").partition(":")[2]]


def test_repository_with_an_upload_stays(disk):
    found = disk.image("alice/a", "1", b"layer")
    disk.delete("alice/a", found)
    disk.upload("alice/a", "1", b"x")
    Cleaner(disk.root).clean()
    assert (disk.repository("alice/a") / "_uploads/1/data").exists()
    assert not disk.linked("alice/a")


def test_repository_below_one_that_goes_stays(disk):
    disk.delete("alice", disk.image("alice", "1", b"layer"))
    disk.image("alice/a", "1", b"layer")
    Cleaner(disk.root).clean()
    assert disk.digest(b"layer") in disk.linked("alice/a")


@pytest.mark.parametrize("content", [b"no JSON", b"[" * 100_000, b"\xff", None])
def test_manifest_that_cannot_be_read_keeps_its_repository(disk, content):
    strange = disk.digest(content) if content else disk.digest(b"lost")
    if content:
        disk.blob(content)
    disk.revision("alice/a", strange)
    disk.link("alice/a", disk.blob(b"of no image"))
    disk.link("bob/b", disk.blob(b"of no image"))
    assert Cleaner(disk.root).clean() == 1
    assert disk.linked("alice/a") == {strange, disk.digest(b"of no image")}


def test_manifest_of_anything_names_what_it_names(disk):
    layer = disk.blob(b"deep")
    disk.link("alice/a", layer)
    disk.manifest("alice/a", "1", {"digest": 7, "blobs": [{"x": [{"digest": layer}]}]})
    assert Cleaner(disk.root).clean() == 0
