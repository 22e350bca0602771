"""isthmus-registry-clean: deletes unused tags, so that the registry's garbage collection finds their blobs.

The registry's `garbage-collect` removes blobs that no manifest names, but leaves each repository's links to layers,
the history of tags, and folders of what was deleted. These count against their users. It runs as the registry's
account while nothing writes; a repository with a manifest that cannot be read is left as it is.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_HELP = """\
Removes the registry's links to layers that no manifest names, and what deleted images left. The registry must not take
writes meanwhile: isthmus-registry-gc.service sees to that, and then has the registry remove the blobs."""
# More the registry takes for no manifest (distribution, handlers.maxManifestBodySize).
_MANIFEST_BYTES = 4 << 20
_DIGEST = re.compile(r"(?P<algorithm>[a-z0-9]+):(?P<hex>[0-9a-f]{32,128})")
_LOG = logging.getLogger("isthmus-registry-clean")


class ManifestError(Exception):
    """A manifest that cannot be read."""


class Cleaner:
    """Cleans the repositories of a registry.

    Args:
        root: the registry's `rootdirectory`.
    """

    def __init__(self, root: Path) -> None:
        self._repositories = root / "docker/registry/v2/repositories"
        self._blobs = root / "docker/registry/v2/blobs"

    def clean(self) -> int:
        """Clean all of them; return how many names went."""
        return sum(self._clean(folder) for folder in list(_repositories(self._repositories)))

    def _clean(self, repository: Path) -> int:
        revisions = repository / "_manifests/revisions"
        try:
            manifests = {digest for digest, folder in _linked(revisions) if (folder / "link").is_file()}
            needed = {digest for manifest in manifests for digest in self._named(manifest)}
        except (ManifestError, OSError) as error:
            _LOG.warning("%s is left as it is: %s", repository, error)
            return 0
        gone = [folder for digest, folder in _linked(repository / "_layers") if digest not in needed]
        gone += [folder for digest, folder in _linked(revisions) if digest not in manifests]
        for tag in _folders(repository / "_manifests/tags"):
            gone += [folder for digest, folder in _linked(tag / "index") if digest not in manifests]
        for folder in gone:
            (folder / "link").unlink(missing_ok=True)
            folder.rmdir()
        if not manifests:
            self._remove_empty(repository)
        return len(gone)

    def _named(self, manifest: str) -> set[str]:
        """Return the digests that a manifest names."""
        found = _DIGEST.fullmatch(manifest)
        if not found:
            raise ManifestError(f"{manifest} is no digest")
        path = self._blobs / found["algorithm"] / found["hex"][:2] / found["hex"] / "data"
        try:
            with path.open("rb") as file:
                return set(_digests(json.loads(file.read(_MANIFEST_BYTES))))
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"manifest {manifest} is no JSON") from error

    def _remove_empty(self, repository: Path) -> None:
        """Remove a repository that has nothing any more, and the folders above it."""
        for folder, _, _ in os.walk(repository, topdown=False):
            # What is not empty, an upload or another repository, stays.
            with suppress(OSError):
                Path(folder).rmdir()
        for parent in repository.parents:
            if parent == self._repositories:
                return
            with suppress(OSError):
                parent.rmdir()


def _digests(content: Any) -> Iterator[str]:
    """Give each `digest` of a manifest or an index of them, wherever it stands: one too many does no harm."""
    waiting = [content]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if isinstance(each.get("digest"), str):
                yield each["digest"]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _repositories(top: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(top):
        if any(name.startswith("_") for name in names):
            yield Path(folder)
        names[:] = [name for name in names if not name.startswith("_")]


def _linked(folder: Path) -> Iterator[tuple[str, Path]]:
    for algorithm in _folders(folder):
        for each in _folders(algorithm):
            yield f"{algorithm.name}:{each.name}", each


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return []


def main() -> int:
    """Clean; exit status 1 where the disk does not let it."""
    parser = argparse.ArgumentParser(prog="isthmus-registry-clean", description=_HELP)
    parser.add_argument("storage", type=Path, help="the registry's rootdirectory")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        _LOG.info("%d names that no image needs are gone", Cleaner(options.storage).clean())
    except OSError as error:
        _LOG.error("%s; nothing was removed from here on", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
