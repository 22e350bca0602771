"""Layer kubernetes: the key of the control plane's image, its programs, and their versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

# Hex digits of a key: enough that no two images share one.
_KEY_DIGITS = 16


def kubernetes_image_key(obtained: Mapping[str, Mapping[str, Any]], programs: Iterable[str], recipe: str) -> str:
    """Return the key of an image: a hash of its content and its build script.

    Args:
        obtained: name -> path, version and sha256, as role `artifacts` registers.
        programs: names of those in the image.
        recipe: path of the build script.
    """
    lines = [f"{name} {obtained[name]['sha256']}\n" for name in sorted(programs)]
    return sha256("".join(lines).encode() + Path(recipe).read_bytes()).hexdigest()[:_KEY_DIGITS]


def kubernetes_image_programs(obtained: Mapping[str, Mapping[str, Any]], programs: Iterable[str]) -> list[str]:
    """Return the build script's arguments, NAME=PATH each."""
    return [f"{name}={obtained[name]['path']}" for name in sorted(programs)]


def kubernetes_programs(obtained: Mapping[str, Mapping[str, Any]], programs: Iterable[str]) -> list[dict[str, str]]:
    """Return the entries of `host_copies` for login hosts."""
    return [
        {"src": obtained[name]["path"], "dest": f"/usr/local/bin/{name}", "mode": "0755"} for name in sorted(programs)
    ]


def kubernetes_versions(obtained: Mapping[str, Mapping[str, Any]], programs: Iterable[str]) -> dict[str, str]:
    """Return program -> version."""
    return {name: str(obtained[name]["version"]) for name in sorted(programs)}


FILTERS: dict[str, Callable[..., object]] = {
    "kubernetes_image_key": kubernetes_image_key,
    "kubernetes_image_programs": kubernetes_image_programs,
    "kubernetes_programs": kubernetes_programs,
    "kubernetes_versions": kubernetes_versions,
}
