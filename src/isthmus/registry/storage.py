"""Reads a user's usage from the registry's disk (distribution, registry/storage/paths.go).

    repositories/NAME/_layers/ALGORITHM/HEX/link                a blob that can be pulled by this name
                     /_manifests/revisions/ALGORITHM/HEX/link   a manifest
                     /_manifests/tags/TAG/current/link          the manifest of a tag
                     /_manifests/tags/TAG/index/ALGORITHM/HEX   those that it ever named
                     /_uploads/ID/data                          what has come of a blob
                     /_uploads/ID/hashstates/ALGORITHM/OFFSET   what the registry notes of its hash
    blobs/ALGORITHM/HH/HEX/data                                 a blob, once for all

A folder that has not changed is not read again: so after the first time a user's usage costs as many questions to the
kernel as there are repositories, tags and uploads, not blobs. What a name stood for counts until the cleaning,
for a link that went leaves its folder behind.
"""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from isthmus.registry.room import MOST_ENTRIES, Usage

# Users whose folders are remembered.
_REMEMBERED = 16
_SIZES = 200_000
# Two changes within a tick of the kernel's clock leave the same time: a folder must have rested to be trusted.
_REST_S = 2.0
_LINK_BYTES = 256


class Folders:
    """Names in folders, read again where a folder has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[int, tuple[str, ...]]] = {}

    def names(self, folder: Path) -> tuple[str, ...]:
        """Return the names in a folder; none where it is not, or is none."""
        try:
            found = folder.stat(follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                return ()
            known = self._known.get(folder)
            if known and known[0] == found.st_mtime_ns:
                return known[1]
            listed = tuple(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            self._known.pop(folder, None)
            return ()
        if time.time() - found.st_mtime > _REST_S:
            self._known[folder] = found.st_mtime_ns, listed
        return listed


class Storage:
    """The registry's disk; not for several threads at once.

    Args:
        root: the registry's `rootdirectory`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._repositories = root / "docker/registry/v2/repositories"
        self._blobs = root / "docker/registry/v2/blobs"
        self._folders: OrderedDict[str, Folders] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def free_bytes(self) -> int:
        """Return what the disk has left."""
        found = os.statvfs(self._root)
        return found.f_bavail * found.f_frsize

    def usage(self, user: str) -> Usage:
        """Return what a user has.

        Raises:
            OSError: the disk does not say.
        """
        folders = self._of(user)
        digests: set[str] = set()
        entries = upload_bytes = 0
        for repository in self.repositories(user):
            entries += 1
            for kind in ("_layers", "_manifests/revisions"):
                linked = list(_digests(folders, repository / kind))
                digests.update(linked)
                entries += len(linked)
            tags = repository / "_manifests/tags"
            for tag in folders.names(tags):
                entries += 1 + sum(1 for _ in _digests(folders, tags / tag / "index"))
            for upload in folders.names(repository / "_uploads"):
                size, states = _upload(repository / "_uploads" / upload)
                upload_bytes += size
                entries += 1 + states
            if entries > MOST_ENTRIES:
                break
        return Usage(upload_bytes + sum(map(self._size, digests)), entries)

    def repositories(self, user: str) -> Iterator[Path]:
        """Give the folders of a user's repositories; one may lie below another."""
        folders = self._of(user)
        waiting = [self._repositories / user]
        while waiting:
            folder = waiting.pop()
            names = folders.names(folder)
            if any(name.startswith("_") for name in names):
                yield folder
            waiting += [folder / name for name in sorted(names, reverse=True) if not name.startswith("_")]

    def name(self, repository: Path) -> str:
        """Return the name of a repository's folder."""
        return str(repository.relative_to(self._repositories))

    def tags(self, repository: Path) -> dict[str, str]:
        """Return a repository's tags, and the digest of the manifest that each names."""
        tags = repository / "_manifests/tags"
        found = {tag: _link(tags / tag / "current/link") for tag in sorted(_listed(tags))}
        return {tag: digest for tag, digest in found.items() if digest}

    def manifests(self, repository: Path) -> list[str]:
        """Return the digests of a repository's manifests."""
        revisions = repository / "_manifests/revisions"
        return sorted(
            f"{algorithm}:{hexadecimal}"
            for algorithm in _listed(revisions)
            for hexadecimal in _listed(revisions / algorithm)
            if (revisions / algorithm / hexadecimal / "link").is_file()
        )

    def _of(self, user: str) -> Folders:
        folders = self._folders.pop(user, None) or Folders()
        self._folders[user] = folders
        while len(self._folders) > _REMEMBERED:
            self._folders.popitem(last=False)
        return folders

    def _size(self, digest: str) -> int:
        """Return the size of a blob, which never changes; 0 for one that is gone, or not there yet."""
        if digest not in self._sizes:
            algorithm, _, hexadecimal = digest.partition(":")
            try:
                size = (self._blobs / algorithm / hexadecimal[:2] / hexadecimal / "data").stat().st_size
            except FileNotFoundError:
                return 0
            if len(self._sizes) >= _SIZES:
                self._sizes.clear()
            self._sizes[digest] = size
        return self._sizes[digest]


def _digests(folders: Folders, folder: Path) -> Iterator[str]:
    for algorithm in folders.names(folder):
        for hexadecimal in folders.names(folder / algorithm):
            yield f"{algorithm}:{hexadecimal}"


def _upload(folder: Path) -> tuple[int, int]:
    """Return what an upload has brought, and how many notes the registry keeps of its hash."""
    try:
        found = (folder / "data").stat()
        size = max(found.st_size, found.st_blocks * 512)
    except FileNotFoundError:
        size = 0
    states = folder / "hashstates"
    return size, sum(len(_listed(states / algorithm)) for algorithm in _listed(states))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _link(path: Path) -> str:
    try:
        with path.open(encoding="ascii") as file:
            return file.read(_LINK_BYTES)
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
