"""A user's registry mirrors: a drop-in of containers-registries.conf.d(5) in the home.

skopeo, and with it `isthmus pull` and the kubelet, reads the site's drop-ins and the user's after them; for the same
prefix the user's holds. Mirrors are tried in their order, and then the registry itself.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.model.images import REGISTRY
from isthmus.support import durable

Mirrors = Mapping[str, Sequence[str]]
NAME = "isthmus.conf"
SITE = Path("/etc/containers/registries.conf.d")


class MirrorsError(Exception):
    """What was asked for cannot be, or a file is none of ours; the message has the remedy."""


def of_user(home: Path) -> Path:
    """Return the folder of the user's own drop-ins."""
    return home / ".config/containers/registries.conf.d"


def read(folder: Path) -> dict[str, list[str]]:
    """Return the mirrors that Isthmus' drop-in of a folder names: prefix -> locations, the first of them tried first.

    Raises:
        MirrorsError: the file cannot be read, or is no such TOML.
    """
    path = folder / NAME
    try:
        rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get("registry", [])
        return {str(row["prefix"]): [str(one["location"]) for one in row["mirror"]] for row in rows if "mirror" in row}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise MirrorsError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MirrorsError(f"{path} is no list of mirrors ({error}); move it away, or mend it by hand") from error


def write(folder: Path, mirrors: Mirrors) -> None:
    """Replace the drop-in of a folder, which is made if missing; no mirrors, no file.

    Raises:
        MirrorsError: a name is none of a registry, or the file cannot be written; the old one is as it was.
    """
    for name in (each for prefix, found in mirrors.items() for each in (prefix, *found)):
        if not REGISTRY.fullmatch(name):
            raise MirrorsError(
                f"{name!r} is no registry; write host, host:port or host/path, without a scheme or a tag"
            )
    path = folder / NAME
    try:
        if mirrors:
            folder.mkdir(parents=True, exist_ok=True)
            durable.write(path, text(mirrors))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise MirrorsError(f"{path} cannot be written: {error.strerror}. Nothing was changed") from error


def text(mirrors: Mirrors) -> str:
    """Return the drop-in, as containers-registries.conf(5) has it."""
    # Every name matches REGISTRY, so that JSON's string is TOML's.
    lines = ["# Written by `isthmus images mirror`: the next one writes it again."]
    for prefix, locations in sorted(mirrors.items()):
        lines += ["", "[[registry]]", f"prefix = {json.dumps(prefix)}", f"location = {json.dumps(prefix)}"]
        for location in locations:
            lines += ["[[registry.mirror]]", f"location = {json.dumps(location)}"]
    return "\n".join([*lines, ""])
