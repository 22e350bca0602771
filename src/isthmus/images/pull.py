"""Pull an image: from its name to one squashfs file in the user's cache.

    name -> digest of the manifest for this machine -> is it there?
    no -> lock -> is it there now? -> its layers, as tar files -> one tree -> squashfs -> rename

Whoever made the image is a stranger: of its files none is ever written under its own name. The layers' headers make a
tree in memory, and what it holds goes from the layers into the squashfs, with the owners and modes that the image says.

The digest comes first, so that a name whose image has changed is a new file, and equal images are one. Of many
pulls at once, on any nodes, one works and the others wait for it; where the home has no locks, each works.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import skopeo, squashfs
from isthmus.clients.process import StalledError, never
from isthmus.images import base, cache, layers, manifests, stream
from isthmus.images.cache import Cache
from isthmus.images.errors import told, unpacking
from isthmus.images.tree import Tree
from isthmus.model.images import Pulled, Reference

SCHEMA = 1
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pull works.

    Attributes:
        cache: where images stay.
        scratch: where they are unpacked meanwhile: large, and best on the node's own disk.
        authfile: credentials in Docker's form; None for skopeo's own search.
        arch: the machine the image is for.
        unwanted: tells that nobody wants an image any more; what works on it ends soon.
        root_alone: whether containers of this user know nobody but root, whose all files are then to be.
    """

    cache: Path
    scratch: Path
    authfile: Path | None
    arch: str
    unwanted: Callable[[], bool] = never
    root_alone: bool = False


def pull(image: Reference, place: Place, tell: Tell) -> Pulled:
    """Make sure that an image is in the cache.

    Args:
        image: which one.
        place: where.
        tell: takes a word on what is being done.

    Raises:
        ImageError: it could not be had; nothing half is left.
    """
    started = time.monotonic()
    with told(image, f"{place.cache} or {place.scratch}", str(place.authfile or "no file")):
        kept = Cache(place.cache)
        cache.check_credentials(place.authfile)
        digest = _digest(image, kept, place, tell)
        cached = kept.has(digest) or not _make(image.at(digest), digest, kept, place, tell)
        path = kept.path(digest)
        kept.use(digest)
        took_s = round(time.monotonic() - started, 3)
        return Pulled(SCHEMA, str(image), digest, path, path.stat().st_size, cached, took_s)


def _digest(image: Reference, kept: Cache, place: Place, tell: Tell) -> str:
    # Needs no registry: what is called by its digest cannot have changed.
    if image.digest and kept.has(image.digest):
        return image.digest
    tell("asking for")
    return manifests.digest(image, skopeo.manifest(image, place.authfile, place.scratch), place.arch)


def _make(image: Reference, digest: str, kept: Cache, place: Place, tell: Tell) -> bool:
    """Make the file; return False when another pull has made it meanwhile."""
    with kept.lock(digest, lambda: tell("waiting for another pull of")) as alone:
        if kept.has(digest):
            return False
        with cache.scratch(place.scratch) as folder, kept.making(digest, alone=alone) as partial:
            tell("downloading")
            skopeo.copy(image, folder / "image", place.authfile, place.unwanted)
            tell("unpacking")
            tree = _tree(image, folder, place, tell)
            tell("packing")

            def feed(pipe: int) -> None:
                stream.write(tree, pipe, lambda: _wanted(place))

            squashfs.pack(feed, tree.root.mode, partial, place.unwanted)
    return True


def _tree(image: Reference, folder: Path, place: Place, tell: Tell) -> Tree:
    """Return the files of a downloaded image, with what Apptainer needs."""
    found = manifests.parts(image, folder / "image")
    config = manifests.config(image, found.config.read_text(errors="replace"))
    merged = layers.merge(image, found.layers, lambda: _wanted(place), root_alone=place.root_alone)
    if merged.strangers:
        tell(f"giving to nobody, for a pod has ids up to 65535 only, {merged.strangers} files of")
    with unpacking(image, f"{place.cache} or {place.scratch}"):
        base.add(merged.tree, base.make(config, place.arch, folder, place.unwanted))
    return merged.tree


def _wanted(place: Place) -> None:
    if place.unwanted():
        raise StalledError("pull", None, "is not wanted any more")
