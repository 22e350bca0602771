"""A registry's disk as docker-registry leaves it (distribution, registry/storage/paths.go)."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any


class RegistryDisk:
    """One, made by hand.

    Attributes:
        root: its `rootdirectory`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = root / "docker/registry/v2"

    def repository(self, name: str) -> Path:
        """Return a repository's folder."""
        return self._top / "repositories" / name

    def digest(self, content: bytes) -> str:
        """Return a blob's name."""
        return "sha256:" + hashlib.sha256(content).hexdigest()

    def blob(self, content: bytes) -> str:
        """Store a blob."""
        digest = self.digest(content)
        name = digest.partition(":")[2]
        _write(self._top / "blobs/sha256" / name[:2] / name / "data", content)
        return digest

    def link(self, repository: str, digest: str) -> None:
        """Have a repository link a blob."""
        self._link(self.repository(repository) / "_layers", digest)

    def revision(self, repository: str, digest: str) -> None:
        """Have a repository link a manifest."""
        self._link(self.repository(repository) / "_manifests/revisions", digest)

    def manifest(self, repository: str, tag: str, content: Any) -> str:
        """Store a manifest under a tag."""
        digest = self.blob(json.dumps(content).encode())
        self.revision(repository, digest)
        folder = self.repository(repository) / "_manifests/tags" / tag
        self._link(folder / "index", digest)
        _write(folder / "current/link", digest.encode())
        return digest

    def image(self, repository: str, tag: str, layer: bytes, config: bytes = b"config") -> str:
        """Store an image of one layer; return the digest of its manifest."""
        parts = [self.blob(config), self.blob(layer)]
        for digest in parts:
            self.link(repository, digest)
        return self.manifest(repository, tag, {"config": {"digest": parts[0]}, "layers": [{"digest": parts[1]}]})

    def current(self, repository: str, tag: str) -> str:
        """Return what a tag names."""
        return (self.repository(repository) / "_manifests/tags" / tag / "current/link").read_text()

    def delete(self, repository: str, digest: str) -> None:
        """Delete a manifest as the registry does: its link and its tags, and nothing of the folders."""
        manifests = self.repository(repository) / "_manifests"
        (manifests / "revisions" / digest.replace(":", "/") / "link").unlink()
        for tag in list((manifests / "tags").iterdir()):
            if (tag / "current/link").read_text() == digest:
                for folder, _, files in os.walk(tag, topdown=False):
                    for file in files:
                        Path(folder, file).unlink()
                    Path(folder).rmdir()

    def upload(self, repository: str, name: str, content: bytes, notes: int = 0) -> None:
        """Have an upload under way."""
        folder = self.repository(repository) / "_uploads" / name
        _write(folder / "data", content)
        _write(folder / "startedat", b"now")
        for number in range(notes):
            _write(folder / "hashstates/sha256" / str(number), b"state")

    def linked(self, repository: str) -> set[str]:
        """Return the digests that a repository links."""
        found = self.repository(repository).glob("_*/**/sha256/*/link")
        return {f"sha256:{path.parent.name}" for path in found if "tags" not in path.parts}

    def rest(self) -> None:
        """Have nothing changed for a while."""
        before_s = time.time() - 60
        for folder, _, _ in os.walk(self.root):
            os.utime(folder, (before_s, before_s))

    def _link(self, folder: Path, digest: str) -> None:
        _write(folder / digest.replace(":", "/") / "link", digest.encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
