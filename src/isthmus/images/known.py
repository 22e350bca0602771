"""Metadata of cached images, so that a known one starts without its registry.

.names/<hash>.json   a name, and the digest that it meant when it was last asked for
.config/<digest>.json   what the image starts by itself: entrypoint, variables, user
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.clients import skopeo
from isthmus.images import manifests
from isthmus.images.errors import explained
from isthmus.images.workspace import Workspace
from isthmus.model.images import Reference, file_name
from isthmus.support import durable

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Known:
    """The memory beside a cache.

    Attributes:
        cache: the folder of images.
    """

    cache: Path

    def digest(self, image: Reference) -> str | None:
        """Return what a name meant, if that image is still there."""
        digest = image.digest or (self._read(self._name(str(image))) or {}).get("digest")
        return digest if digest and (self.cache / file_name(digest)).exists() else None

    def remember(self, image: Reference, digest: str) -> None:
        """Remember what a name means."""
        self._write(self._name(str(image)), {"schema": SCHEMA, "name": str(image), "digest": digest})

    def names(self) -> dict[str, set[str]]:
        """Return the names of each digest."""
        found: dict[str, set[str]] = {}
        for path in (self.cache / ".names").glob("*.json"):
            kept = self._read(path) or {}
            found.setdefault(str(kept.get("digest")), set()).add(str(kept.get("name")))
        return found

    def forget(self, digest: str, names: Iterable[str]) -> None:
        """Forget an image."""
        for name in names:
            self._name(name).unlink(missing_ok=True)
        self._config(digest).unlink(missing_ok=True)

    def config(self, image: Reference, digest: str, workspace: Workspace) -> dict[str, Any]:
        """Return an image's configuration; the registry is asked once.

        Raises:
            ImageError: it is not known, and could not be had.
        """
        if (kept := self.kept_config(digest)) is not None:
            return kept
        with explained(image, str(workspace.cache), str(workspace.authfile or "no file")):
            config = manifests.config(image, skopeo.config(image.at(digest), workspace.authfile, workspace.scratch))
        self._write(self._config(digest), config)
        return config

    def kept_config(self, digest: str) -> dict[str, Any] | None:
        """Return an image's configuration as far as it is known without its registry."""
        return self._read(self._config(digest))

    def _config(self, digest: str) -> Path:
        return self.cache / ".config" / f"{digest.replace(':', '-')}.json"

    def _name(self, name: str) -> Path:
        return self.cache / ".names" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"

    @staticmethod
    def _read(path: Path) -> dict[str, Any] | None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return kept if isinstance(kept, dict) else None

    @staticmethod
    def _write(path: Path, content: dict[str, Any]) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.write(path, json.dumps(content), 0o600)
