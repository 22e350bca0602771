"""Garbage collection of the cache: by age and size, and never an image that a pod uses.

An image's file is touched when it is used, so its time says when it was last wanted. What other jobs of the user start
from it nobody knows; so only what was not used for an hour at least goes without being named. Layers count as images
do, but only pulls use them, and one that goes meanwhile is still open: it may go at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.images.cache import is_being_written
from isthmus.images.known import Known
from isthmus.images.store import keeping
from isthmus.model.images import file_name, parse

# Who has asked for an image has started it by then.
LEAST_S = 3600.0
# The first kind of file has no number: see `model.images.file_name`.
_FILE = re.compile(r"sha256-(?P<hex>[0-9a-f]{64})(?:\.\d+)?\.squashfs")
_LAYER = re.compile(r"\.?sha256-(?P<hex>[0-9a-f]{64})\.\d+\.layer(?P<part>(?:\.[0-9a-f]+)?\.part)?")


@dataclass(frozen=True, slots=True)
class Kept:
    """An image in the cache, or a layer.

    Attributes:
        digest: of its manifest, or of the layer.
        path: its file.
        names: by which the kubelet pulled it; none for one that only `isthmus pull` did.
        size_bytes: of its file.
        used_s: when it was last used, seconds since the epoch.
        runs: whether a pod that is there is made of it.
        is_old: whether its file is of an earlier kind, which nothing uses any more, or left by a pull that was killed.
        is_layer: whether it is a layer.
    """

    digest: str
    path: Path
    names: tuple[str, ...]
    size_bytes: int
    used_s: float
    runs: bool
    is_old: bool
    is_layer: bool = False


def listed(cache: Path, pods: Path) -> list[Kept]:
    """Return what is in a cache, the last used first.

    Args:
        cache: ~/.isthmus/images; need not exist.
        pods: the folders of the user's pods.

    Raises:
        OSError: it cannot be read.
    """
    known = Known(cache)
    names = known.names()
    running = _running(pods, known)
    found = []
    for path in cache.iterdir() if cache.exists() else ():
        match = _FILE.fullmatch(path.name)
        # One may go meanwhile.
        with suppress(FileNotFoundError):
            if match and path.is_file():
                digest, status = f"sha256:{match['hex']}", path.stat()
                of_it = tuple(sorted(names.get(digest, ())))
                is_old = path.name != file_name(digest)
                found.append(Kept(digest, path, of_it, status.st_size, status.st_mtime, digest in running, is_old))
    return sorted(found, key=lambda image: image.used_s, reverse=True)


def layers(cache: Path) -> list[Kept]:
    """Return the layers beside a cache, the last used first.

    Args:
        cache: ~/.isthmus/images; need not exist.

    Raises:
        OSError: it cannot be read.
    """
    folder, found = cache / keeping.FOLDER, []
    for path in folder.iterdir() if folder.exists() else ():
        match = _LAYER.fullmatch(path.name)
        with suppress(FileNotFoundError):
            if match and path.is_file() and not (match["part"] and is_being_written(path)):
                digest, status = f"sha256:{match['hex']}", path.stat()
                is_old = path.name != keeping.file_name(digest)
                found.append(Kept(digest, path, (), status.st_size, status.st_mtime, False, is_old, is_layer=True))
    return sorted(found, key=lambda layer: layer.used_s, reverse=True)


def surplus(
    images: Iterable[Kept], now_s: float, *, unused_s: float | None = None, size_bytes: int | None = None
) -> list[Kept]:
    """Return which may go: what was not used for so long, then the longest unused until the rest is small enough.

    Args:
        images: the cache, and the layers beside it.
        now_s: seconds since the epoch.
        unused_s: the longest time that one stays unused; None for no limit.
        size_bytes: what all may have together; None for no limit.
    """
    unused = (one for one in images if one.is_layer or (not one.runs and one.used_s <= now_s - LEAST_S))
    free = sorted(unused, key=lambda one: one.used_s)
    gone = [one for one in free if one.is_old or (unused_s is not None and one.used_s < now_s - unused_s)]
    if size_bytes is not None:
        left = sum(one.size_bytes for one in images) - sum(one.size_bytes for one in gone)
        for one in (one for one in free if one not in gone):
            if left > size_bytes:
                gone.append(one)
                left -= one.size_bytes
    return gone


def remove(cache: Path, images: Sequence[Kept]) -> int:
    """Remove images, with layers among them, and what is remembered of them; return how many bytes that gave.

    Raises:
        OSError: the cache cannot be written.
    """
    known = Known(cache)
    for image in images:
        image.path.unlink(missing_ok=True)
        if not image.is_old and not image.is_layer:
            known.forget(image.digest, image.names)
    return sum(image.size_bytes for image in images)


def _running(pods: Path, known: Known) -> frozenset[str]:
    """Return the digests that the user's pods run or will run: by reports, else by names."""
    found = set()
    for folder in pods.iterdir() if pods.is_dir() else ():
        document = _read(folder / "report.json").get("containers")
        for one in document.values() if isinstance(document, dict) else ():
            found.add(str(one.get("image_id")).rpartition("@")[2])
        spec = _read(folder / "pod.json").get("spec") or {}
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            for container in spec.get(kind) or ():
                with suppress(ValueError):
                    found.add(known.digest(parse(container.get("image") or "")) or "")
        for volume in spec.get("volumes") or ():
            with suppress(ValueError):
                found.add(known.digest(parse((volume.get("image") or {}).get("reference") or "")) or "")
    return frozenset(found)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
