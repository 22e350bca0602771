"""From a manifest to the digest of what this machine runs (OCI image specification, image-index)."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

from isthmus.images.errors import UnknownImageError
from isthmus.model.images import Reference, is_digest

# Go's names, which indexes use, for the kernel's.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture() -> str:
    """Return this machine's architecture, as images name it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def digest(image: Reference, text: str, arch: str) -> str:
    """Return the digest of the manifest for a machine.

    Args:
        image: for messages.
        text: what `skopeo inspect --raw` printed: a manifest, or an index of manifests.
        arch: the machine, e.g. amd64.

    Raises:
        UnknownImageError: the index has no image for it, or the text is no manifest.
    """
    known = _read(image, text)
    if "manifests" not in known:
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    found: dict[str, str] = {}
    for each in known["manifests"]:
        where = each.get("platform") or {}
        if where.get("os", "linux") == "linux":
            found.setdefault(where.get("architecture", arch), each["digest"])
    if not is_digest(found.get(arch, "")):
        machines = ", ".join(sorted(set(found) - {"unknown"})) or "none"
        raise UnknownImageError(f"{image} is not made for {arch}; it is for: {machines}")
    return str(found[arch])


def _read(image: Reference, text: str) -> dict[str, Any]:
    try:
        known = json.loads(text)
    except ValueError as error:
        raise UnknownImageError(f"what is called {image} has no manifest; check its name") from error
    if not isinstance(known, dict):
        raise UnknownImageError(f"what is called {image} has no manifest; check its name")
    return known
