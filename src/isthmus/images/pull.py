"""Pull an image: from its name to one squashfs file in the user's cache.

    name -> digest of the manifest for this machine -> is it there?
    no -> lock -> is it there now? -> OCI layout -> its manifest -> folder -> its entries -> squashfs -> rename

Whoever made the image is a stranger: it is unpacked where nothing but the scratch folder can be written.

The digest comes first, so that a name whose image has changed is a new file, and equal images are one. Of many
pulls at once, on any nodes, one works and the others wait for it; where the home has no locks, each works.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients import apptainer, skopeo, squashfs
from isthmus.clients.process import never
from isthmus.images import cache, entries, manifests
from isthmus.images.cache import Cache
from isthmus.images.errors import told, unpacking
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
    """

    cache: Path
    scratch: Path
    authfile: Path | None
    arch: str
    unwanted: Callable[[], bool] = never


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
            skopeo.copy(image, folder / "oci", place.authfile, place.unwanted)
            manifests.check(image, folder / "oci")
            tell("unpacking")
            with unpacking(image, f"{place.cache} or {place.scratch}"):
                apptainer.unpack(folder / "oci", folder / "root", place.unwanted)
            entries.check(image, folder / "root")
            tell("packing")
            squashfs.pack(folder / "root", partial, place.unwanted)
    return True
