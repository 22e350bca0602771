"""The registry: its address, its accounts, and its desired content.

An image's tag is the key of its recipe, so the registry itself shows what is missing: no list is kept anywhere,
and any deployer sees the same.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.images import recipes
from isthmus.model.registry import SETTINGS_SCHEMA, SITE

_ADDRESS = re.compile(r"(?P<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?):(?P<port>\d{1,5})")


def registry_endpoint(address: str) -> dict[str, Any]:
    """Split `host:port`.

    Raises:
        InputError: for a scheme, a path, a missing port, or one out of range.
    """
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise InputError(f"{address!r} is no address of a registry", "write host:port, without a scheme or a path")
    port = int(match["port"])
    if not 1 <= port <= 65535:
        raise InputError(f"{address!r} has no usable port", "write one from 1 to 65535")
    return {"host": match["host"], "port": port}


def registry_settings(passwords: Mapping[str, str], keeper: str, limits: Mapping[str, Any]) -> str:
    """Return the settings of isthmus-tokend.

    Args:
        passwords: account -> password, of 40 random characters: their hash needs neither salt nor rounds.
        keeper: the account that fills the site's namespaces.
        limits: service, the registry's name; quota_gib; quotas, user -> GiB; reserve_gib.
    """
    accounts = {
        account: {
            "sha256": sha256(password.encode()).hexdigest(),
            "quota_bytes": _bytes(limits["quotas"].get(account, limits["quota_gib"])),
        }
        for account, password in sorted(passwords.items())
    }
    settings = {
        "schema": SETTINGS_SCHEMA,
        "service": limits["service"],
        "keeper": keeper,
        "reserve_bytes": _bytes(limits["reserve_gib"]),
        "accounts": accounts,
    }
    return json.dumps(settings, indent=1) + "\n"


def registry_taken(users: Iterable[str]) -> list[str]:
    """Return the users whose names are namespaces of the site."""
    return sorted(SITE.intersection(users))


def registry_authfile(addresses: Iterable[str], password: Mapping[str, str]) -> str:
    """Return a containers-auth.json(5) with the same account for each address; `password`: account -> password."""
    ((account, secret),) = password.items()
    auth = b64encode(f"{account}:{secret}".encode()).decode()
    return json.dumps({"auths": {address: {"auth": auth} for address in addresses}}, indent=2) + "\n"


def registry_tags(wanted: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return name and tag of each image to look up in the registry."""
    return [{"name": recipe["name"], "tag": tag} for recipe in wanted for tag in recipe["tags"]]


def registry_lacking(
    wanted: Iterable[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the recipes whose image is missing, or has not all tags.

    Args:
        wanted: the result of `registry_recipes`.
        found: name, tag and digest ("" for none) of each of `registry_tags`, as module `registry_digests` returns them.
    """
    digests = _digests(found)
    return [
        recipe
        for recipe in wanted
        if len({digests.get((recipe["name"], tag)) for tag in recipe["tags"]}) > 1
        or not digests.get((recipe["name"], recipe["key"]))
    ]


def registry_copies(lacking: Iterable[Mapping[str, Any]], folder: str) -> list[dict[str, str]]:
    """Return the entries of `host_copies` for the images' archives."""
    return [{"src": recipe["archive"], "dest": _archive(recipe, folder), "mode": "0600"} for recipe in lacking]


def registry_pushes(
    lacking: Iterable[Mapping[str, Any]], folder: str, repository: str, authfile: str
) -> list[list[str]]:
    """Return the commands that push images, in their order.

    Only an image's first tag is pushed from the archive; further tags are copied within the registry.
    """
    copy = ["skopeo", "copy", "--quiet", "--preserve-digests", f"--authfile={authfile}"]
    pushes = []
    for recipe in lacking:
        first, *others = (f"docker://{repository}/{recipe['name']}:{tag}" for tag in recipe["tags"])
        pushes += [[*copy, f"oci-archive:{_archive(recipe, folder)}", first]]
        pushes += [[*copy, first, other] for other in others]
    return pushes


def _archive(recipe: Mapping[str, Any], folder: str) -> str:
    return f"{folder}/{recipe['name']}.tar"


def registry_images_file(wanted: Iterable[Mapping[str, Any]], found: Sequence[Mapping[str, Any]], address: str) -> str:
    """Return images.json: the registry's name, and for each image its fixed reference and its digest."""
    digests = _digests(found)
    images = {
        recipe["name"]: {
            "reference": f"{address}/isthmus/{recipe['name']}:{recipe['key']}",
            "digest": digests[recipe["name"], recipe["key"]],
        }
        for recipe in wanted
    }
    return json.dumps({"schema": 1, "registry": address, "images": images}, indent=2) + "\n"


def _bytes(gib: Any) -> int:
    return int(float(gib) * (1 << 30))


def _digests(found: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    return {(image["name"], image["tag"]): image["digest"] for image in found}


FILTERS: dict[str, Callable[..., object]] = {
    "registry_authfile": registry_authfile,
    "registry_copies": registry_copies,
    "registry_build_command": recipes.registry_build_command,
    "registry_endpoint": registry_endpoint,
    "registry_images_file": registry_images_file,
    "registry_lacking": registry_lacking,
    "registry_pushes": registry_pushes,
    "registry_recipes": recipes.registry_recipes,
    "registry_settings": registry_settings,
    "registry_tags": registry_tags,
    "registry_taken": registry_taken,
}
