"""Squashfs files made in both ways from layers, and what an independent reader (unsquashfs) finds in them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from isthmus.clients import squashfs
from isthmus.images import archive, layers, stream
from isthmus.images.squashfs import writing
from isthmus.images.store import packing
from isthmus.model import images

IMAGE = images.parse("registry:5000/app")


def nobody_waits() -> None:
    """Stand in for `wanted`."""


def by_mksquashfs(tars: Iterable[Path], file: Path) -> Path:
    """Pack layers' plain tar files with mksquashfs."""
    tree = layers.merge(IMAGE, map(archive.entries, tars), nobody_waits).tree
    squashfs.pack(lambda pipe: stream.write(tree, pipe, nobody_waits), tree.root.mode, file)
    return file


def packed(tar: Path) -> Path:
    """Keep a layer beside its tar file."""
    kept = tar.with_suffix(".layer")
    if not kept.exists():
        with kept.open("xb") as out:
            packing.write(archive.entries(tar), out, nobody_waits)
    return kept


def by_copying(tars: Sequence[Path], file: Path) -> Path:
    """Write a squashfs from layers that are kept."""
    with ExitStack() as opened:
        kept = {
            number: opened.enter_context(closing(packing.Layer(packed(tar))))
            for number, tar in enumerate(tars, start=1)
        }
        entries = (layer.entries(number) for number, layer in kept.items())
        tree = layers.merge(IMAGE, entries, nobody_waits).tree
        with file.open("xb") as out:
            writing.write(tree, {number: layer.origin for number, layer in kept.items()}, out, nobody_waits)
    return file


def files(squash: Path) -> bytes:
    """Return names, kinds, modes, owners, times, links and content; not of the root, which mksquashfs dates itself."""
    with TemporaryDirectory() as folder:
        found = Path(folder, "found")
        words = ["unsquashfs", "-no-progress", "-quiet", "-pf", str(found), str(squash)]
        subprocess.run(words, check=True, capture_output=True)
        root, _, rest = found.read_bytes().partition(b"\n")
    assert root.startswith(b"/ D "), root
    return rest
