"""Pull an image: from its name to one squashfs file in the user's cache.

    name -> digest of the manifest for this machine -> is it there?
    no -> lock -> is it there now? -> which of its layers are there? (see `store.making`)
       -> the others, downloaded -> one tree -> squashfs -> rename

The image is untrusted input: none of its files is ever written under its own name. The layers' headers make a
tree in memory, and what it holds goes from the layers into the squashfs, with the owners and modes that the image says.

The digest comes first, so that a name whose image has changed is a new file, and equal images are one. Of many
pulls at once, on any nodes, one works and the others wait for it; where the home has no locks, each works.

Layers stay, so that an image on a known base brings only its own. Where they cannot, for want of room or by their kind,
the image is packed by mksquashfs from plain tar files.
"""

from __future__ import annotations

import time
from pathlib import Path

from isthmus.clients import skopeo, squashfs
from isthmus.images import archive, base, cache, manifests, stream
from isthmus.images.cache import Cache
from isthmus.images.errors import explained
from isthmus.images.store import making
from isthmus.images.store.making import NotKeptError
from isthmus.images.workspace import Progress, Workspace
from isthmus.model.images import Pulled, Reference

SCHEMA = 1


def pull(image: Reference, workspace: Workspace, progress: Progress) -> Pulled:
    """Make sure that an image is in the cache.

    Args:
        image: which one.
        workspace: where.
        progress: takes a word on what is being done.

    Raises:
        ImageError: it could not be had; nothing half is left.
    """
    started = time.monotonic()
    with explained(image, f"{workspace.cache} or {workspace.scratch}", str(workspace.authfile or "no file")):
        kept = Cache(workspace.cache)
        cache.check_credentials(workspace.authfile)
        digest, manifest = _digest(image, kept, workspace, progress)
        cached = kept.has(digest) or not _make(image.at(digest), digest, manifest, kept, workspace, progress)
        path = kept.path(digest)
        kept.use(digest)
        took_s = round(time.monotonic() - started, 3)
        return Pulled(SCHEMA, str(image), digest, path, path.stat().st_size, cached, took_s)


def _digest(image: Reference, kept: Cache, workspace: Workspace, progress: Progress) -> tuple[str, str]:
    """Return the digest of the image for this machine, and the manifest or index that the name stands for."""
    # Needs no registry: what is called by its digest cannot have changed.
    if image.digest and kept.has(image.digest):
        return image.digest, ""
    progress("asking for")
    manifest = skopeo.manifest(image, workspace.authfile, workspace.scratch)
    return manifests.digest(image, manifest, workspace.arch), manifest


def _make(image: Reference, digest: str, manifest: str, kept: Cache, workspace: Workspace, progress: Progress) -> bool:
    """Make the file; return False when another pull has made it meanwhile."""
    with kept.lock(digest, lambda: progress("waiting for another pull of")) as alone:
        if kept.has(digest):
            return False
        known = _layers(image, manifest, workspace)
        try:
            with cache.scratch(workspace.scratch) as folder, kept.making(digest, alone=alone) as partial:
                making.make(image, known, partial, folder, workspace, progress)
        except NotKeptError as reason:
            progress(f"making without keeping layers, for {reason},")
            with cache.scratch(workspace.scratch) as folder, kept.making(digest, alone=alone) as partial:
                _make_whole(image, partial, folder, workspace, progress)
    return True


def _layers(image: Reference, manifest: str, workspace: Workspace) -> list[str]:
    """Return the digests of the layers, as far as they are known before the image is there."""
    found = manifests.layers(image, manifest)
    if found or not image.registry:
        return found
    return manifests.layers(image, skopeo.manifest(image, workspace.authfile, workspace.scratch))


def _make_whole(image: Reference, target: Path, folder: Path, workspace: Workspace, progress: Progress) -> None:
    """Make the file of what is downloaded for it alone."""
    progress("downloading")
    skopeo.copy(image, folder / "image", workspace.authfile, workspace.unwanted)
    progress("unpacking")
    parts = manifests.parts(image, folder / "image")
    config = manifests.config(image, parts.config.read_text(errors="replace"))
    entries = map(archive.entries, parts.layers)
    tree = base.completed(
        image, entries, lambda: base.make(config, workspace.arch, folder, workspace.unwanted), workspace, progress
    )
    progress("packing")
    squashfs.pack(lambda pipe: stream.write(tree, pipe, workspace.check), tree.root.mode, target, workspace.unwanted)
