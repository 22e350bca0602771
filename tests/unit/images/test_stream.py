"""A tree as a tar stream holds what the tree does; mksquashfs reads it."""

import io
import os
import subprocess
import tarfile
import threading

import pytest

from isthmus.clients import squashfs
from isthmus.images import archive, layers, stream
from isthmus.images.tree import Tree
from isthmus.model import images
from tests.support.files.layers import entry, write

IMAGE = images.parse("registry:5000/app")
MODE = 0o711
ENTRIES = [
    entry("home/app", "folder", mode=0o2770, uid=1000, gid=50),
    entry("home/app/data", value="x" * 70_000, uid=1000, gid=50, mode=0o600),
    entry("home/app/same", "hard", "home/app/data"),
    entry("bin/ping", value="program", mode=0o4755),
    entry("tmp", "folder", mode=0o1777),
    entry("link", "link", "/bin/ping", uid=3),
    entry("pipe", "fifo"),
    entry("empty"),
    entry("/".join(["long" * 30] * 4), value="deep"),
    entry("not utf-8 \udcff"),
]


def merged(path):
    return layers.merge(IMAGE, [archive.entries(write(path, ENTRIES, tarfile.GNU_FORMAT))], lambda: None).tree


@pytest.fixture
def tree(tmp_path):
    return merged(tmp_path / "layer.tar")


def streamed(tree: Tree) -> bytes:
    ours, theirs = os.pipe()
    found = io.BytesIO()

    def read():
        with os.fdopen(ours, "rb") as file:
            found.write(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    stream.write(tree, theirs, lambda: None)
    os.close(theirs)
    reader.join()
    return found.getvalue()


def test_stream_holds_the_tree(tree):
    with tarfile.open(fileobj=io.BytesIO(streamed(tree)), mode="r:") as archive:
        found = {each.name: each for each in archive}
        data, same = found["home/app/data"], found["home/app/same"]
        assert (data.mode, data.uid, data.gid, data.isreg()) == (0o600, 1000, 50, True)
        assert archive.extractfile(data).read() == b"x" * 70_000
        assert (same.islnk(), same.linkname) == (True, "home/app/data")
        assert (found["home/app"].mode, found["bin/ping"].mode, found["tmp"].mode) == (0o2770, 0o4755, 0o1777)
        assert (found["link"].linkname, found["link"].uid, found["pipe"].isfifo()) == ("/bin/ping", 3, True)
        assert "not utf-8 \udcff" in found
        order = list(found)
        assert all(os.path.dirname(name) in ("", *order[:number]) for number, name in enumerate(order))


def test_equal_trees_give_equal_streams(tree, tmp_path):
    other = merged(tmp_path / "other.tar")
    assert streamed(tree) == streamed(other)


def test_squashfs_has_owners_modes_and_links(tree, tmp_path):
    squashfs.pack(lambda pipe: stream.write(tree, pipe, lambda: None), MODE, tmp_path / "image")
    listed = subprocess.run(["unsquashfs", "-lln", tmp_path / "image"], check=True, capture_output=True).stdout
    lines = [line.split() for line in listed.decode(errors="replace").splitlines() if "squashfs-root" in line]
    found = {words[5].removeprefix("squashfs-root"): (words[0], words[1]) for words in lines}
    assert found["/home/app"] == ("drwxrws---", "1000/50")
    assert found["/home/app/data"] == found["/home/app/same"] == ("-rw-------", "1000/50")
    assert (found["/bin/ping"], found["/tmp"]) == (("-rwsr-xr-x", "0/0"), ("drwxrwxrwt", "0/0"))
    assert found[""] == ("drwx--x--x", "0/0")
    assert squashfs.read(tmp_path / "image", "home/app/same") == "x" * 70_000


def test_failure_of_who_feeds_comes_out(tree, tmp_path):
    def fail(pipe):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        squashfs.pack(fail, MODE, tmp_path / "image")


def test_layer_that_is_gone_meanwhile_is_an_error(tree, tmp_path):
    (tmp_path / "layer.tar").write_bytes(b"")
    with pytest.raises(OSError, match="ended too early"):
        squashfs.pack(lambda pipe: stream.write(tree, pipe, lambda: None), MODE, tmp_path / "image")


def test_place_that_cannot_be_written_is_the_programs_word(tree, tmp_path):
    with pytest.raises(Exception, match="mksquashfs"):
        squashfs.pack(lambda pipe: stream.write(tree, pipe, lambda: None), MODE, tmp_path / "none/image")
