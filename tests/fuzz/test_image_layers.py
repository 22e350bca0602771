"""Layers of strangers, put on one another: kept and copied, they are what mksquashfs makes of them."""

import tarfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.images.archive import entries
from isthmus.images.errors import HostileImageError
from isthmus.images.layers import merge
from tests.support.files.layers import entry, write
from tests.support.files.squashfs_files import IMAGE, by_copying, by_mksquashfs, files, nobody_waits

# Each example starts three programs.
EXAMPLES = max(10, settings.default.max_examples // 10)
BLOCK = 1 << 17
PARTS = st.sampled_from(
    ["a", "b", "c", "link", ".", "..", ".wh.a", ".wh.c", ".wh..wh..opq", "\u20ac", "not utf-8 \udcff", "d" * 255]
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
SIZES = st.one_of(st.integers(0, 300), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7]))
CONTENTS = st.builds(
    lambda size, seed: (seed * (size // len(seed) + 1))[:size], SIZES, st.text("abcdefgh", min_size=1, max_size=9)
)
IDS = st.one_of(st.integers(0, 10), st.sampled_from([65534, 65535, 65536, 2_097_151]))
ENTRIES = st.builds(
    lambda name, what, mode, uid, gid, mtime: entry(name, *what, mode=mode, uid=uid, gid=gid, mtime=mtime),
    NAMES,
    st.one_of(
        st.tuples(st.just("file"), CONTENTS),
        st.tuples(st.sampled_from(["folder", "fifo", "device"])),
        st.tuples(st.just("link"), NAMES),
        st.tuples(st.just("hard"), NAMES),
    ),
    st.integers(0, 0o7777),
    IDS,
    IDS,
    st.integers(0, 2**32 - 1),
)
STACKS = st.lists(st.lists(ENTRIES, max_size=12), min_size=1, max_size=4)


def accepted(stack, place):
    """Leave out what has the whole image refused; refusals have their own tests."""
    tars = []
    for number, layer in enumerate(stack):
        kept, tar = [], place / f"{number}.tar"
        for each in layer:
            write(tar, [*kept, each], tarfile.GNU_FORMAT)
            with suppress(HostileImageError):
                merge(IMAGE, map(entries, [*tars, tar]), nobody_waits)
                kept.append(each)
        tars.append(write(tar, kept, tarfile.GNU_FORMAT))
    return tars


@settings(max_examples=EXAMPLES)
@given(STACKS)
def test_both_ways_are_the_same(stack):
    with TemporaryDirectory() as folder:
        place = Path(folder)
        tars = accepted(stack, place)
        assert files(by_copying(tars, place / "ours")) == files(by_mksquashfs(tars, place / "theirs"))
