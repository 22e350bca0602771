"""Files and folders that Apptainer expects in an image: variables, entrypoint, mount points.

Apptainer itself makes them, of an image that has nothing but the configuration; so it never sees a stranger's files. Of
what it made, its own folder and links take the place of the image's; the rest is added where the image has nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from isthmus.clients import apptainer
from isthmus.images import layers
from isthmus.images.archive import Entry
from isthmus.images.errors import unpacking
from isthmus.images.tree import Inode, Kind, Source, Tree, TreeError
from isthmus.images.workspace import Progress, Workspace
from isthmus.model.images import Reference

_OWN = (".singularity.d", ".exec", ".run", ".shell", ".test", "environment", "singularity")
# Everybody's, as in every distribution; Apptainer makes them for one user.
_OPEN = ("tmp", "var/tmp")
_OPEN_MODE = 0o1777
# A tar of nothing.
_EMPTY = bytes(1024)


def make(config: dict[str, Any], arch: str, scratch: Path, unwanted: Callable[[], bool]) -> Path:
    """Have Apptainer make the folder.

    Args:
        config: of the image: variables, entrypoint and the like (OCI image specification, config.md).
        arch: the machine.
        scratch: a folder in which nothing is yet.
        unwanted: whether nobody waits for it any more.

    Raises:
        ProcessError: it could not.
    """
    layout, root = scratch / "bare", scratch / "root"
    (layout / "blobs/sha256").mkdir(parents=True)
    layer = _blob(layout, "image.layer.v1.tar", _EMPTY)
    image = {
        "architecture": arch,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "config": _blob(layout, "image.config.v1+json", json.dumps(image).encode()),
        "layers": [layer],
    }
    top = _blob(layout, "image.manifest.v1+json", json.dumps(manifest).encode())
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [top]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    apptainer.unpack(layout, root, unwanted)
    return root


def completed(
    image: Reference,
    entries: Iterable[Iterable[Entry]],
    made: Callable[[], Path],
    workspace: Workspace,
    progress: Progress,
) -> Tree:
    """Return the files of an image, with what Apptainer needs.

    Args:
        image: for messages.
        entries: of each layer, the lowest first.
        made: returns what `make` did.
        workspace: for whom.
        progress: takes a word on what is being done.

    Raises:
        ImageError: a layer is none, or Apptainer could not.
        OSError: a layer cannot be read.
    """
    merged = layers.merge(image, entries, workspace.check, root_alone=workspace.root_alone)
    if merged.strangers:
        progress(f"giving to nobody, for a pod has ids up to 65535 only, {merged.strangers} files of")
    with unpacking(image, f"{workspace.cache} or {workspace.scratch}"):
        add(merged.tree, made())
    return merged.tree


def add(tree: Tree, root: Path) -> None:
    """Put into an image's tree what Apptainer made.

    Raises:
        OSError: it cannot be read.
    """
    for name in _OWN:
        tree.root.children.pop(name, None)
    for parent, folders, files in os.walk(root):
        above = os.path.relpath(parent, root)
        for name in sorted(folders + files):
            path = os.path.normpath(os.path.join(above, name))
            if path.split("/")[0] in _OWN or not _has(tree, path):
                _put(tree, path, Path(parent, name))


def _has(tree: Tree, path: str) -> bool:
    try:
        tree.find(path)
    except TreeError:
        return False
    return True


def _put(tree: Tree, path: str, made: Path) -> None:
    found = made.lstat()
    mode = _OPEN_MODE if path in _OPEN else stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        inode = Inode(Kind.LINK, 0o777, target=os.readlink(made))
    elif stat.S_ISDIR(found.st_mode):
        inode = Inode(Kind.FOLDER, mode)
    elif stat.S_ISREG(found.st_mode):
        inode = Inode(Kind.FILE, mode, source=Source(str(made), 0, found.st_size))
    else:
        return
    try:
        tree.put(path, inode)
    except TreeError:
        # The image has a file where Apptainer would have a folder: it goes without.
        return


def _blob(layout: Path, kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    (layout / "blobs/sha256" / digest).write_bytes(content)
    return {"mediaType": f"application/vnd.oci.{kind}", "digest": f"sha256:{digest}", "size": len(content)}
