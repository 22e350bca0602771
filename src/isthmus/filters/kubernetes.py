"""Layer kubernetes: images of control planes, the present one and earlier ones, their programs and versions.

The deployer's cache has each image under its versions and a key. So the versions that a cluster had before are found
there, whichever tree made them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.model import skew

# Hex digits of a key: enough that no two images share one.
_KEY_DIGITS = 16
_NAME = re.compile(r"control-plane-(?P<kubernetes>\d+\.\d+\.\d+)-(?P<etcd>\d+\.\d+\.\d+)-[0-9a-f]{16}\.squashfs")

Row = Mapping[str, str]


def kubernetes_image_key(obtained: Mapping[str, Mapping[str, Any]], programs: Iterable[str], recipe: str) -> str:
    """Return the key of an image: a hash of its content and its build script.

    Args:
        obtained: name -> path, version and sha256, as role `artifacts` registers.
        programs: names of those in the image.
        recipe: path of the build script.
    """
    lines = [f"{name} {obtained[name]['sha256']}\n" for name in sorted(programs)]
    return sha256("".join(lines).encode() + Path(recipe).read_bytes()).hexdigest()[:_KEY_DIGITS]


def kubernetes_image_name(versions: Row, key: str) -> str:
    """Return the name of an image in the deployer's cache."""
    return f"control-plane-{versions['kubernetes']}-{versions['etcd']}-{key}.squashfs"


def kubernetes_earlier(present: Row, folders: Iterable[str], wanted: Sequence[str], kept: int) -> list[dict[str, str]]:
    """Return earlier images that stay beside the present one, the newest first: src, kubernetes and etcd of each.

    Args:
        present: kubernetes and etcd of this tree.
        folders: of the deployer, that have images.
        wanted: versions of Kubernetes that must be among them; empty for the newest ones.
        kept: how many of those.

    Raises:
        InputError: a wanted one is not there, or not earlier.
    """
    found: dict[tuple[tuple[int, ...], ...], dict[str, str]] = {}
    # Of equal versions the last one made.
    for path in sorted((each for name in folders for each in Path(name).glob("control-plane-*")), key=_made):
        if name := _NAME.fullmatch(path.name):
            row = name.groupdict()
            found[_numbers(row)] = {"src": str(path), **row}
    earlier = [found[each] for each in sorted(found, reverse=True) if each < _numbers(present)]
    if not wanted:
        return earlier[:kept]
    for version in wanted:
        _check(str(version), present, earlier, folders)
    return [row for row in earlier if row["kubernetes"] in map(str, wanted)]


def _check(version: str, present: Row, earlier: Iterable[Row], folders: Iterable[str]) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise InputError(f"kubernetes_versions has {version!r}", "write whole versions, such as 1.36.3")
    if skew.numbers(version) > skew.numbers(present["kubernetes"]):
        tree = f"this tree's Kubernetes is {present['kubernetes']}"
        raise InputError(f"kubernetes_versions has {version}, and {tree}", "name earlier ones alone")
    if version not in [present["kubernetes"], *(row["kubernetes"] for row in earlier)]:
        raise InputError(
            f"kubernetes_versions has {version}, and {' and '.join(folders)} have no image of it",
            f"copy control-plane-{version}-*.squashfs there from the deployer that had it, or leave it out",
        )


def kubernetes_image_rows(images: Iterable[Row], share: str) -> list[dict[str, str]]:
    """Return the images for hosts' settings: file, kubernetes and etcd of each."""
    return [
        {"file": _place(image, share), "kubernetes": image["kubernetes"], "etcd": image["etcd"]} for image in images
    ]


def kubernetes_image_copies(images: Iterable[Row], share: str) -> list[dict[str, str]]:
    """Return the entries of `host_copies` for images; a check run may not have made the present one."""
    return [{"src": image["src"], "dest": _place(image, share)} for image in images if Path(image["src"]).is_file()]


def _place(image: Row, share: str) -> str:
    return f"{share}/control-plane-{image['kubernetes']}-{image['etcd']}.squashfs"


def _numbers(versions: Row) -> tuple[tuple[int, ...], ...]:
    return skew.numbers(versions["kubernetes"]), skew.numbers(versions["etcd"])


def _made(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, str(path)


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
    "kubernetes_earlier": kubernetes_earlier,
    "kubernetes_image_copies": kubernetes_image_copies,
    "kubernetes_image_key": kubernetes_image_key,
    "kubernetes_image_name": kubernetes_image_name,
    "kubernetes_image_programs": kubernetes_image_programs,
    "kubernetes_image_rows": kubernetes_image_rows,
    "kubernetes_programs": kubernetes_programs,
    "kubernetes_versions": kubernetes_versions,
}
