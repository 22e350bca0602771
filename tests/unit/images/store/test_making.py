"""Pulls share layers: what is kept is not downloaded again, and what cannot be kept does not hinder a pull."""

import bz2
import errno
import gzip
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from backports import zstd

from isthmus.images import errors, pull
from isthmus.images.store import keeping, making, packing
from isthmus.model import images
from tests.support.attacks import hostile_images
from tests.support.attacks.hostile_images import file
from tests.support.fakes.image_tools import BASE, REGISTRY, TOP, FakeTools
from tests.support.files.squashfs_files import files

IMAGE, OTHER = (images.parse(f"{REGISTRY}/isthmus/{name}") for name in ("busybox", "other"))


@pytest.fixture
def tools(monkeypatch):
    fake = FakeTools(layers={"busybox": [BASE, TOP], "other": [BASE, [file("bin/other")]]})
    fake.stand_in(monkeypatch)
    return fake


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    return pull.Workspace(tmp_path / ".isthmus/images", tmp_path / "scratch", None, "amd64")


def pulled(place, image=IMAGE, report=lambda _: None):
    return pull.pull(image, place, report)


def kept(place):
    return sorted((place.cache / ".layers").glob("*.layer"))


def names(path):
    return {line.split()[0] for line in files(path).partition(b"\n#\n")[0].splitlines()}


def test_image_on_a_known_base_downloads_its_own_layer_alone(tools, place):
    first = pulled(place)
    assert len(tools.downloaded) == 4  # Two layers, the configuration and the manifest.
    tools.downloaded.clear()
    second = pulled(place, OTHER)
    assert len(tools.downloaded) == 3
    assert len(kept(place)) == 3
    assert {b"bin/sh", b"bin/true"} <= names(first.path)
    assert {b"bin/sh", b"bin/other", b"etc/gone"} <= names(second.path)
    assert not names(first.path) & {b"bin/other", b"etc/gone"}


def test_kept_layers_are_their_owners_alone_and_noted_as_used(tools, place):
    pulled(place)
    assert kept(place)[0].parent.stat().st_mode & 0o777 == 0o700
    for path in kept(place):
        os.utime(path, (1, 1))
    pulled(place, OTHER)
    assert sum(path.stat().st_mtime > 1 for path in kept(place)) == 2


@pytest.mark.parametrize("damage", [lambda path: os.truncate(path, 50), lambda path: path.write_bytes(b"x" * 900)])
def test_damaged_layer_is_downloaded_again(tools, place, damage):
    pulled(place)
    for path in kept(place):
        damage(path)
    tools.downloaded.clear()
    assert {b"bin/sh", b"bin/other"} <= names(pulled(place, OTHER).path)
    assert len(tools.downloaded) == 4


def test_pulls_at_once_of_two_images_download_their_base_once(tools, place):
    base = hashlib.sha256(hostile_images.packed(hostile_images._tar(BASE, "/none"))).hexdigest()
    waits = threading.Event()

    def report(word):
        if word == "waiting for another pull of a layer of":
            waits.set()

    # Who is first goes on when the other waits for it.
    tools.while_copying = lambda: waits.wait(10)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda image: pulled(place, image, report), (IMAGE, OTHER)))
    assert waits.is_set()
    assert all(b"bin/sh" in names(each.path) for each in found)
    assert tools.downloaded.count(base) == 1


@pytest.mark.parametrize("compress", [zstd.compress, lambda content: content])
def test_layers_come_compressed_in_several_ways(tools, place, monkeypatch, compress):
    monkeypatch.setattr(hostile_images, "packed", compress)
    assert {b"bin/sh", b"bin/true"} <= names(pulled(place).path)
    assert len(kept(place)) == 2


@pytest.mark.parametrize(
    ("compress", "reported"),
    [
        (lambda content: gzip.compress(content)[:-9], "is refused: in layer 1, it is no archive"),
        (lambda content: zstd.compress(content)[:-9], "is refused: in layer 1, it is no archive"),
        (lambda content: gzip.compress(b"x" * 2048), "is refused: in layer 1, it is no archive"),
        (lambda content: b"x" * 2048, "is refused: in layer 1, it is no archive"),
    ],
)
def test_layer_that_is_none_is_refused_and_not_kept(tools, place, monkeypatch, compress, reported):
    monkeypatch.setattr(hostile_images, "packed", compress)
    with pytest.raises(errors.HostileImageError, match=reported):
        pulled(place)
    assert kept(place) == []
    assert list(place.scratch.iterdir()) == []


def test_unusual_compression_is_left_to_mksquashfs(tools, place, monkeypatch):
    monkeypatch.setattr(hostile_images, "packed", bz2.compress)
    words = []
    assert pulled(place, report=words.append).path.read_text() == "whole"
    assert "making without keeping layers, for its layers are compressed in a way that is seldom seen," in words


def test_scratch_with_a_colon_is_left_to_mksquashfs(tools, place, tmp_path):
    (tmp_path / "a:b").mkdir()
    odd = pull.Workspace(place.cache, tmp_path / "a:b", None, "amd64")
    assert pulled(odd).path.read_text() == "whole"


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", [(packing, "write"), (making.writing, "write")])
def test_home_without_room_for_layers_gives_them_up(tools, place, monkeypatch, what):
    pulled(place, OTHER)
    monkeypatch.setattr(*what, full)
    words = []
    assert pulled(place, report=words.append).path.read_text() == "whole"
    assert "making without keeping layers, for no room is left for its layers," in words
    assert kept(place) == []
    assert [path for path in place.cache.rglob("*.part")] == []


def test_layer_that_another_node_removes_is_done_without(tools, place, monkeypatch):
    def gone(*_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(making.writing, "write", gone)
    words = []
    assert pulled(place, report=words.append).path.read_text() == "whole"
    assert "making without keeping layers, for one went meanwhile," in words
    assert len(kept(place)) == 2


def test_disk_that_keeps_something_else_is_reported(tools, place, monkeypatch):
    original = packing.write

    def write(entries, out, wanted):
        original(entries, out, wanted)
        out.truncate(10)

    monkeypatch.setattr(packing, "write", write)
    with pytest.raises(errors.ImageError, match="it is not what was written"):
        pulled(place)
    assert kept(place) == []


def test_home_without_any_room_is_reported(tools, place, monkeypatch):
    monkeypatch.setattr(packing, "write", full)
    tools.full = {"mksquashfs"}
    with pytest.raises(errors.NoSpaceError, match=f"no space is left in {place.cache}"):
        pulled(place)
    assert not list(place.cache.glob("*.squashfs"))


def test_blob_that_is_not_what_its_digest_says_is_not_kept(tools, place, monkeypatch):
    original = hostile_images.make

    def altered(layout, layers, target, **config):
        made = original(layout, layers, target, **config)
        for blob in (layout / "blobs/sha256").iterdir():
            if blob.read_bytes().startswith(b"\x1f\x8b"):
                blob.write_bytes(gzip.compress(b""))
        return made

    monkeypatch.setattr(hostile_images, "make", altered)
    monkeypatch.setattr(FakeTools, "_inspect", lambda *_: None)
    with pytest.raises(errors.ImageError, match="is not what its digest says"):
        pulled(place)
    assert kept(place) == []


@pytest.mark.parametrize("lay", [lambda path: path.mkdir(), lambda path: path.symlink_to("/etc/passwd")])
def test_what_lies_in_a_layers_place_is_named(tools, place, lay):
    pulled(place)
    (path, *_) = kept(place)
    path.unlink()
    lay(path)
    tools.layers["other"] = [BASE, TOP, [file("x")]]
    with pytest.raises(errors.ImageError, match=r"\.layers"):
        pulled(place, OTHER)


def test_store_that_is_anothers_is_refused(tools, place):
    place.cache.mkdir(parents=True)
    (place.cache / keeping.FOLDER).symlink_to("/none")
    with pytest.raises(errors.ImageError, match=r"\.layers: File exists; "):
        pulled(place)


def test_too_many_owners_are_reported(tools, place, monkeypatch):
    def refuse(*_):
        raise making.writing.TooManyIdsError("it has more than 65535 owners and groups")

    monkeypatch.setattr(making.writing, "write", refuse)
    with pytest.raises(errors.HostileImageError, match="more than 65535 owners and groups; ask the image's author"):
        pulled(place)
