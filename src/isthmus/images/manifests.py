"""From a manifest to the digest of what this machine runs (OCI image specification, image-index).

What is read was written by a stranger: whatever it holds, the answer is a value of the right kind or an ImageError.
skopeo bounds manifests and configurations to 4 MiB and compares digests.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.images.errors import HostileImageError, UnknownImageError
from isthmus.model.images import Reference, is_digest

# Go's names, which indexes use, for the kernel's.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Docker builds 127 at most.
MAX_LAYERS = 512
# Linux starts no program with more than 2 MiB of arguments and variables.
MAX_CONFIG = 1 << 20
_SHOWN = 20
_LISTS, _WORDS = ("Entrypoint", "Cmd", "Env"), ("User", "WorkingDir")


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
    for each in _objects(image, known["manifests"]):
        where = each.get("platform") or {}
        if not isinstance(where, dict):
            raise _nonsense(image)
        name, known_as = where.get("architecture", arch), each.get("digest")
        if where.get("os", "linux") == "linux" and isinstance(name, str) and isinstance(known_as, str):
            found.setdefault(name, known_as)
    if not is_digest(found.get(arch, "")):
        machines = ", ".join(repr(name)[1:-1] for name in sorted(set(found) - {"unknown"})[:_SHOWN]) or "none"
        raise UnknownImageError(f"{image} is not made for {arch}; it is for: {machines}")
    return found[arch]


@dataclass(frozen=True, slots=True)
class Parts:
    """The files of an image that was copied: its layers, the lowest first, and its configuration."""

    layers: list[Path]
    config: Path


def parts(image: Reference, folder: Path) -> Parts:
    """Read the manifest of an image that was copied into a folder.

    Raises:
        HostileImageError: it is none that an honest builder writes.
    """
    return _parts(image, (folder / "manifest.json").read_text(errors="replace"), folder)


def layout(image: Reference, folder: Path) -> Parts:
    """Read the manifest of an image that was copied into an OCI layout (OCI image specification, image-layout.md).

    Raises:
        HostileImageError: it is none that an honest builder writes.
    """
    blobs = folder / "blobs/sha256"
    index = _read(image, (folder / "index.json").read_text(errors="replace"))
    (top,) = _objects(image, index.get("manifests"))
    return _parts(image, _blob(image, blobs, top).read_text(errors="replace"), blobs)


def layers(image: Reference, text: str) -> list[str]:
    """Return the digests of a manifest's layers, the lowest first; none for an index.

    Raises:
        HostileImageError: they are too many, lie elsewhere, or are none.
    """
    known = _read(image, text)
    return [_digest(image, each) for each in _layers(image, known)] if "layers" in known else []


def _parts(image: Reference, text: str, blobs: Path) -> Parts:
    known = _read(image, text)
    found = [_blob(image, blobs, each) for each in _layers(image, known)]
    return Parts(found, _blob(image, blobs, known.get("config")))


def _layers(image: Reference, known: dict[str, Any]) -> list[dict[str, Any]]:
    layers = _objects(image, known.get("layers"))
    if len(layers) > MAX_LAYERS:
        raise HostileImageError(f"{image} has {len(layers)} layers; more than {MAX_LAYERS} are not unpacked")
    if any(layer.get("urls") for layer in layers):
        raise HostileImageError(f"{image} wants a layer from an address of its own; only whole images are pulled")
    return layers


def _blob(image: Reference, folder: Path, described: object) -> Path:
    return folder / _digest(image, described).partition(":")[2]


def _digest(image: Reference, described: object) -> str:
    name = described.get("digest") if isinstance(described, dict) else None
    if not isinstance(name, str) or not is_digest(name):
        raise _nonsense(image)
    return name


def config(image: Reference, text: str) -> dict[str, Any]:
    """Return what an image starts by itself, as far as it is used: lists of words, and words (image-spec, config.md).

    Raises:
        UnknownImageError: it is no configuration.
        HostileImageError: no program could be started with it.
    """
    found = _read(image, text).get("config") or {}
    if not isinstance(found, dict):
        raise _nonsense(image)
    words = [word for name in _LISTS for word in _words(image, found.get(name) or [])]
    words += _words(image, [found.get(name) or "" for name in _WORDS])
    if sum(map(len, words)) > MAX_CONFIG:
        raise HostileImageError(f"{image} has variables and arguments of more than {MAX_CONFIG} bytes; none starts so")
    return {name: found[name] for name in (*_LISTS, *_WORDS) if found.get(name)}


def _words(image: Reference, words: object) -> list[bytes]:
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _nonsense(image)
    try:
        encoded = [word.encode() for word in words]
    except UnicodeEncodeError as error:
        raise _nonsense(image) from error
    if any(b"\0" in word for word in encoded):
        raise _nonsense(image)
    return encoded


def _objects(image: Reference, found: object) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _nonsense(image)
    return found


def _nonsense(image: Reference) -> HostileImageError:
    return HostileImageError(f"the manifest or configuration of {image} makes no sense; ask the image's author")


def _read(image: Reference, text: str) -> dict[str, Any]:
    try:
        known = json.loads(text)
    # A text of nothing but brackets ends in the latter.
    except (ValueError, RecursionError) as error:
        raise UnknownImageError(f"what is called {image} has no manifest; check its name") from error
    if not isinstance(known, dict):
        raise UnknownImageError(f"what is called {image} has no manifest; check its name")
    return known
