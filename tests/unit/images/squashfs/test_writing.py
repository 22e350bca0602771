"""What is written is what mksquashfs writes, to a reader that is neither's; tests/fuzz compares random layers."""

import os
import random
import struct
import subprocess

import pytest

from isthmus.images.squashfs import writing
from isthmus.images.tree import Inode, Kind, Source, Tree
from tests.support.files.layers import entry, write
from tests.support.files.squashfs_files import by_copying, by_mksquashfs, files, nobody_waits

BLOCK = 1 << 17
NOISE = random.Random(1).randbytes(3 * BLOCK + 1).decode("latin-1")  # noqa: S311  no secret
STACKS = {
    "nothing": [[]],
    "kinds": [
        [
            entry("bin", "link", "usr/bin"),
            entry("usr/bin/ping", value="program", mode=0o4755),
            entry("home/app", "folder", mode=0o2770, uid=1000, gid=50, mtime=99),
            entry("home/app/data", value="mine", mode=0o600, uid=1000, gid=50, mtime=2**32 - 1),
            entry("tmp", "folder", mode=0o1777),
            entry("run/pipe", "fifo", mode=0o620, gid=5),
            entry("not utf-8 \udcff", value="x"),
        ]
    ],
    "sizes": [[entry(f"f{size}", value="ab" * (size // 2) + "c" * (size % 2)) for size in (0, 1, BLOCK - 1, BLOCK)]],
    "what cannot be compressed": [[entry(f"f{size}", value=NOISE[-size:]) for size in (5, BLOCK // 2, 2 * BLOCK + 1)]],
    "equal content": [
        [
            *(entry(f"f{number}", value=NOISE) for number in range(9)),
            *(entry(f"p{n}", value="page" * 1024) for n in "ab"),
        ],
        [entry("g", value=NOISE[::-1]), entry("h", value=NOISE[::-1]), entry(".wh.f0"), entry("i", value="i" * BLOCK)],
    ],
    "hard links": [
        [
            entry("a", value=NOISE),
            entry("b", "hard", "a"),
            entry("s"),
            entry("l", "link", "a"),
            entry("m", "hard", "l"),
        ],
        [entry("c", "hard", "b"), entry("a", value="other"), entry("t", "hard", "s")],
    ],
    "later layers": [
        [entry("a/b", value="x" * BLOCK), entry("a/c", value="y" * 100), entry("d/e", value="z"), entry("f")],
        [entry("a/b", value=NOISE), entry("d/.wh..wh..opq"), entry("d/g", value="new"), entry(".wh.f")],
        [entry("a", "folder", mode=0o700), entry("d/.wh.g"), entry("h/" * 60 + "i", value="deep")],
    ],
    "many names": [
        [entry(f"d/{number:05}-{'x' * (number % 200)}", value=str(number)) for number in range(3000)],
        [entry("d/.wh.00077-" + "x" * 77)],
    ],
    "longest names": [[entry("n" * 255, "link", "t" * 4095), *(entry(f"{n:03}" + "m" * 252) for n in range(300))]],
    "many folders and owners": [[entry(f"{n}/f", value=str(n % 7), uid=n, gid=n + 1, mtime=n) for n in range(600)]],
}


@pytest.mark.parametrize("stack", STACKS)
def test_files_are_those_of_mksquashfs(tmp_path, stack):
    tars = [write(tmp_path / f"{number}.tar", each) for number, each in enumerate(STACKS[stack])]
    ours, theirs = by_copying(tars, tmp_path / "ours"), by_mksquashfs(tars, tmp_path / "theirs")
    assert files(ours) == files(theirs)
    assert ours.stat().st_size <= 1.1 * theirs.stat().st_size + 4096


def test_names_of_a_large_folder_are_found_by_their_index(tmp_path):
    names = [f"d/{number:05}" for number in range(0, 20_000, 7)]
    image = by_copying([write(tmp_path / "1.tar", [entry(name, value=name) for name in names])], tmp_path / "ours")
    for name in (names[0], names[1234], names[-1]):
        assert subprocess.run(["unsquashfs", "-cat", image, name], capture_output=True).stdout.decode() == name


def test_root_is_the_images(tmp_path):
    image = by_copying([write(tmp_path / "1.tar", [entry("./", "folder", mode=0o711, uid=5, mtime=9)])], tmp_path / "i")
    listed = subprocess.run(["unsquashfs", "-lln", "-UTC", image], capture_output=True, text=True).stdout
    assert listed.split()[:5] == ["drwx--x--x", "5/0", "3", "1970-01-01", "00:00"]


def test_equal_layers_give_equal_files(tmp_path):
    made = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        tars = [write(tmp_path / folder / f"{number}.tar", each) for number, each in enumerate(STACKS["later layers"])]
        made.append(by_copying(tars, tmp_path / folder / "image").read_bytes())
    assert made[0] == made[1]


def test_content_that_no_later_layer_leaves_is_not_copied(tmp_path):
    below = write(tmp_path / "1.tar", [entry("a", value=NOISE), entry("b", value=NOISE[::-1])])
    one = by_copying([below], tmp_path / "one")
    two = by_copying([below, write(tmp_path / "2.tar", [entry(".wh.a")])], tmp_path / "two")
    assert one.stat().st_size - two.stat().st_size > len(NOISE) - 4096


def sparse(path, size):
    with path.open("wb") as file:
        file.truncate(size)
    return Source(str(path), 0, size)


@pytest.mark.full
def test_file_of_more_than_four_gib(tmp_path):
    tree = Tree()
    size = (1 << 32) + 5
    tree.put("large", Inode(Kind.FILE, 0o644, source=sparse(tmp_path / "source", size)))
    with (tmp_path / "image").open("xb") as out:
        writing.write(tree, {}, out, nobody_waits)
    read = subprocess.Popen(["unsquashfs", "-cat", tmp_path / "image", "large"], stdout=subprocess.PIPE)
    found = 0
    while content := read.stdout.read(1 << 20):
        assert not content.strip(b"\0")
        found += len(content)
    assert (read.wait(), found) == (0, size)


def owned(count):
    tree = Tree()
    for number in range(count):
        tree.put(f"{number}", Inode(Kind.FIFO, 0o600, uid=number, gid=number))
    return tree


def test_most_owners_are_written(tmp_path):
    with (tmp_path / "image").open("xb") as out:
        writing.write(owned(65535), {}, out, nobody_waits)
    (ids,) = struct.unpack_from("<H", (tmp_path / "image").read_bytes(), 26)
    assert ids == 65535
    assert b"65534 65534" in files(tmp_path / "image")


def test_one_owner_more_is_refused(tmp_path):
    with (tmp_path / "image").open("xb") as out, pytest.raises(writing.TooManyIdsError, match="more than 65535 owners"):
        writing.write(owned(65536), {}, out, nobody_waits)


@pytest.mark.parametrize("cause", ["shorter", "gone"])
def test_source_that_changes_meanwhile_is_an_error(tmp_path, cause):
    tree = Tree()
    tree.put("a", Inode(Kind.FILE, 0o644, source=Source(str(tmp_path / "source"), 0, 10)))
    if cause == "shorter":
        (tmp_path / "source").write_text("short")
    with (tmp_path / "image").open("xb") as out, pytest.raises(OSError, match="source"):
        writing.write(tree, {}, out, nobody_waits)


def test_writing_ends_when_nobody_waits(tmp_path):
    def gone():
        raise KeyboardInterrupt

    tree = Tree()
    tree.put("a", Inode(Kind.FILE, 0o644, source=sparse(tmp_path / "source", 1 << 30)))
    with (tmp_path / "image").open("xb") as out, pytest.raises(KeyboardInterrupt):
        writing.write(tree, {}, out, gone)
    assert os.stat(tmp_path / "image").st_size < 1 << 20
