"""Recipes of container images: what they are made of, and the key that names the outcome.

A recipe is a folder with recipe.yml (suite, variant of mmdebstrap, packages, command, environment) and, where
packages alone don't do, customize.sh. Where packages come from is no part of the key: a mirror changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from isthmus.filters.errors import InputError
from isthmus.filters.image import local_apt_options, local_apt_sources
from isthmus.filters.suggest import check_keys, unknown

KEYS = ("suite", "variant", "packages", "command", "environment")
REQUIRED = ("suite", "variant", "packages", "command")
VARIANTS = ("extract", "essential", "apt")
# Apptainer and skopeo take this tag when a user names none.
LATEST = "latest"
# mmdebstrap calls no other hook of a variant that configures nothing.
_HOOKS = {"extract": "extract"}
# mmdebstrap copies them from where it runs; container runtimes mount their own there.
_THIS_MACHINES = ("hostname", "resolv.conf")
# Licences stay.
_LEFT_OUT = (
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*",
)


def registry_recipes(folder: str, names: Iterable[str], date: str, cache: str) -> list[dict[str, Any]]:
    """Read recipes.

    Args:
        folder: build/images.
        names: the recipes wanted.
        date: YYYY-MM-DD, the date of every file in the images.
        cache: folder of the built images.

    Returns:
        Per recipe its own keys and: name, key (16 hex digits), tags, archive (path), epoch (seconds), folder,
        hook (path, "" for none).

    Raises:
        InputError: for an unknown name, a recipe that is not complete, or no date.
    """
    top = Path(folder)
    known = sorted(path.parent.name for path in top.glob("*/recipe.yml"))
    epoch = _epoch(date)
    found = []
    for name in names:
        if name not in known:
            raise unknown("image in registry_images", name, known)
        recipe = _read(top / name, epoch)
        found.append({**recipe, "archive": f"{cache}/{name}-{recipe['key']}.tar"})
    return found


def registry_build_command(recipe: Mapping[str, Any], targets: str, apt: str) -> list[str]:
    """The command that builds a recipe's OCI archive from the package sources this machine uses.

    Args:
        recipe: from `registry_recipes`.
        targets: this machine's sources, as `local_apt_sources` reads them.
        apt: its settings, as `local_apt_options` reads them.
    """
    own_hook = [f"{_hook(recipe)}={recipe['hook']}"] if recipe["hook"] else []
    options = [f"--aptopt={option}" for option in local_apt_options(apt)]
    sources = local_apt_sources(targets, recipe["suite"])
    build = f"{recipe['folder']}/../build.sh"
    return [build, recipe["archive"], *_arguments(recipe), *own_hook, *options, recipe["suite"], "-", *sources]


def _arguments(recipe: Mapping[str, Any]) -> list[str]:
    """What build.sh is told on any machine; the key covers it."""
    return [
        f"--config.cmd={recipe['command']}",
        *(f"--config.env={name}={value}" for name, value in recipe.get("environment", {}).items()),
        *("--", "--skip=output/dev", f"--variant={recipe['variant']}", f"--include={','.join(recipe['packages'])}"),
        *(f"--dpkgopt={option}" for option in _LEFT_OUT),
        *(f'{_hook(recipe)}=install -m 644 /dev/null "$1/etc/{file}"' for file in _THIS_MACHINES),
    ]


def _hook(recipe: Mapping[str, Any]) -> str:
    return f"--{_HOOKS.get(recipe['variant'], 'customize')}-hook"


def _read(folder: Path, epoch: int) -> dict[str, Any]:
    file, hook = folder / "recipe.yml", folder / "customize.sh"
    recipe = yaml.safe_load(file.read_text())
    check_keys(str(file), recipe, KEYS, REQUIRED)
    if recipe["variant"] not in VARIANTS:
        raise unknown(f"variant in {file}", recipe["variant"], VARIANTS)
    scripts = [path.read_text() for path in (folder.parent / "build.sh", hook) if path.exists()]
    parts = [recipe["suite"], epoch, _arguments(recipe), scripts]
    key = sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return {
        **recipe,
        "name": folder.name,
        "key": key,
        "tags": [key, LATEST],
        "epoch": epoch,
        "folder": str(folder),
        "hook": str(hook) if hook.exists() else "",
    }


def _epoch(date: str) -> int:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", str(date)):
        try:
            return int(datetime.fromisoformat(str(date)).replace(tzinfo=UTC).timestamp())
        except ValueError:
            pass
    raise InputError(f"registry_images_date is {str(date)!r}", "write a date such as 2026-11-01")
