"""A kept layer says what its tar did, and a modified one is noticed."""

import os
import tarfile
from contextlib import closing

import pytest

from isthmus.images import archive
from isthmus.images.squashfs.blocks import NO_FRAGMENT
from isthmus.images.store import packing
from isthmus.images.store.packing import DamagedError, Layer
from tests.support.files.layers import entry, write
from tests.support.files.squashfs_files import nobody_waits, packed

BLOCK = 1 << 17
ENTRIES = [
    entry("d", "folder", mode=0o2755, uid=7, gid=8, mtime=9),
    entry("d/large", value="x" * (2 * BLOCK + 1)),
    entry("d/small", value="y"),
    entry("d/other", value="z"),
    entry("d/empty"),
    entry("d/link", "link", "large"),
    entry("d/hard", "hard", "d/large"),
    entry("d/.wh.gone"),
    entry("null", "device"),
    entry("not utf-8 \udcff", "fifo", uid=2_000_000),
]


@pytest.fixture
def kept(tmp_path):
    return packed(write(tmp_path / "layer.tar", ENTRIES, tarfile.GNU_FORMAT))


def test_entries_are_those_of_the_tar(tmp_path, kept):
    def headers(entries):
        return [(e.name, e.mode, e.uid, e.gid, e.mtime_s, e.target, e.kind) for e in entries]

    with closing(Layer(kept)) as layer:
        assert headers(layer.entries(1)) == headers(archive.entries(tmp_path / "layer.tar"))
        found = {each.name: each.blocks for each in layer.entries(3)}
    assert "null" not in found
    assert (found["d/large"].size, len(found["d/large"].words), found["d/large"].layer) == (2 * BLOCK + 1, 3, 3)
    assert (found["d/small"].fragment, found["d/other"].offset) == (0, 1)
    assert (found["d/empty"].size, found["d/empty"].fragment, found["d"]) == (0, NO_FRAGMENT, None)


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "a bit of a block": lambda path: flip(path, 5),
    "a bit of the index": lambda path: flip(path, -80),
    "a bit of the footer": lambda path: flip(path, -1),
    "another kind of file": lambda path: path.write_bytes(b"x" * 500),
    "its end is missing": lambda path: os.truncate(path, path.stat().st_size - 1),
    "nothing is in it": lambda path: path.write_bytes(b""),
    "zeros at its end": lambda path: os.truncate(path, path.stat().st_size + 4096),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_seen(kept, damage):
    DAMAGES[damage](kept)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(DamagedError):
        Layer(kept)
    assert len(os.listdir("/proc/self/fd")) == before


def test_layer_without_entries(tmp_path):
    (tmp_path / "empty.tar").write_bytes(b"")
    with closing(Layer(packed(tmp_path / "empty.tar"))) as layer:
        assert list(layer.entries(1)) == []


def test_packing_ends_when_nobody_waits(tmp_path):
    tar = write(tmp_path / "1.tar", [entry("a", value="x" * (40 * BLOCK))])

    def gone():
        raise KeyboardInterrupt

    with (tmp_path / "layer").open("xb") as out, pytest.raises(KeyboardInterrupt):
        packing.write(archive.entries(tar), out, gone)


def test_full_disk_comes_out(tmp_path):
    tar = write(tmp_path / "1.tar", [entry("a", value="x" * BLOCK)])
    with open("/dev/full", "wb", buffering=0) as out, pytest.raises(OSError, match="No space left"):
        packing.write(archive.entries(tar), out, nobody_waits)
