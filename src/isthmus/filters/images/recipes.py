"""Recipes of container images: what they are made of, and the key that names the outcome.

A recipe is a folder with recipe.yml (suite, variant of mmdebstrap, packages, command, environment) and, where
packages alone don't do, customize.sh; `base` names the recipe whose customize.sh goes before, `programs` third-party
programs and where they go, `sources` folders of this tree and where their files go, `keep_run` that what packages and
scripts put into /run stays there. Where packages come from is no part of the key: a mirror changes nothing.
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
from isthmus.filters.images.image import local_apt_options, local_apt_sources
from isthmus.filters.suggest import check_keys, unknown

REQUIRED = ("suite", "variant", "packages", "command")
KEYS = (*REQUIRED, "environment", "entrypoint", "base", "programs", "sources", "tags", "keep_run")
BUILD = "build.sh"
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


def registry_recipes(
    folder: str, names: Iterable[str], date: str, cache: str, programs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Read recipes.

    Args:
        folder: build/images.
        names: the recipes wanted.
        date: YYYY-MM-DD, the date of every file in the images.
        cache: folder of the built images.
        programs: those that the role artifacts has obtained.

    Returns:
        Per recipe its own keys and: name, key (16 hex digits), tags, archive (path), epoch (seconds), folder,
        hooks (commands), script (path of build.sh).

    Raises:
        InputError: for an unknown name, a recipe that is not complete, a program that was not obtained, or no date.
    """
    top = Path(folder)
    known = sorted(path.parent.name for path in top.glob("*/recipe.yml"))
    epoch = _epoch(date)
    found = []
    for name in names:
        if name not in known:
            raise unknown("image in registry_images", name, known)
        recipe = _read(top / name, epoch, programs or {})
        found.append({**recipe, "archive": f"{cache}/{name}-{recipe['key']}.tar"})
    return found


def registry_build_command(recipe: Mapping[str, Any], targets: str, apt: str) -> list[str]:
    """The command that builds a recipe's OCI archive from the package sources this machine uses.

    Args:
        recipe: from `registry_recipes`.
        targets: this machine's sources, as `local_apt_sources` reads them.
        apt: its settings, as `local_apt_options` reads them.
    """
    hooks = [f"{_hook(recipe)}={command}" for command in recipe["hooks"]]
    options = [f"--aptopt={option}" for option in local_apt_options(apt)]
    sources = local_apt_sources(targets, recipe["suite"])
    return [recipe["script"], recipe["archive"], *_arguments(recipe), *hooks, *options, recipe["suite"], "-", *sources]


def _arguments(recipe: Mapping[str, Any]) -> list[str]:
    """What build.sh is told on any machine; the key covers it."""
    return [
        *(f"--config.entrypoint={word}" for word in recipe.get("entrypoint", [])),
        *(f"--config.cmd={word}" for word in _words(recipe["command"])),
        *(f"--config.env={name}={value}" for name, value in recipe.get("environment", {}).items()),
        *("--", "--skip=output/dev", *(["--skip=cleanup/run"] if recipe.get("keep_run") else ())),
        *(f"--variant={recipe['variant']}", f"--include={','.join(recipe['packages'])}"),
        *(f"--dpkgopt={option}" for option in _LEFT_OUT),
        *(f'{_hook(recipe)}=install -m 644 /dev/null "$1/etc/{file}"' for file in _THIS_MACHINES),
    ]


def _words(command: str | Iterable[str]) -> list[str]:
    return [command] if isinstance(command, str) else [*command]


def _hook(recipe: Mapping[str, Any]) -> str:
    return f"--{_HOOKS.get(recipe['variant'], 'customize')}-hook"


def _read(folder: Path, epoch: int, programs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    file = folder / "recipe.yml"
    recipe = yaml.safe_load(file.read_text())
    check_keys(str(file), recipe, KEYS, REQUIRED)
    if recipe["variant"] not in VARIANTS:
        raise unknown(f"variant in {file}", recipe["variant"], VARIANTS)
    build = next(path / BUILD for path in folder.parents if (path / BUILD).exists())
    base = [build.parent / recipe["base"]] if "base" in recipe else []
    scripts = [path for path in (build, *(place / "customize.sh" for place in (*base, folder))) if path.exists()]
    put = [_program(file, name, where, programs) for name, where in recipe.get("programs", {}).items()]
    put += [each for name, where in recipe.get("sources", {}).items() for each in _sources(file, build, name, where)]
    parts = [recipe["suite"], epoch, _arguments(recipe), [path.read_text() for path in scripts]]
    # Where a program lies on this machine changes nothing, what it is does.
    key = sha256(json.dumps([*parts, *([where, sha] for _, where, sha in put)]).encode()).hexdigest()[:16]
    before, own = scripts[1 : 1 + len(base)], scripts[1 + len(base) :]
    return {
        **recipe,
        "name": folder.name,
        "key": key,
        "tags": [key, LATEST, *recipe.get("tags", [])],
        "epoch": epoch,
        "folder": str(folder),
        "script": str(build),
        "hooks": [*map(str, before), *(f'install -D -m 755 {path} "$1{to}"' for path, to, _ in put), *map(str, own)],
    }


def _program(file: Path, name: str, where: str, programs: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, str]:
    if name not in programs:
        raise InputError(f"{file} needs the program {name}", "obtain it by the role artifacts before")
    return str(programs[name]["path"]), where, str(programs[name]["sha256"])


def _sources(file: Path, build: Path, name: str, where: str) -> list[tuple[str, str, str]]:
    folder = build.parents[2] / name
    if not folder.is_dir():
        raise InputError(f"{file} needs the folder {name}", "name one of this tree")
    return [
        (str(path), f"{where}/{path.name}", sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.iterdir())
        if path.is_file()
    ]


def _epoch(date: str) -> int:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", str(date)):
        try:
            return int(datetime.fromisoformat(str(date)).replace(tzinfo=UTC).timestamp())
        except ValueError:
            pass
    raise InputError(f"registry_images_date is {str(date)!r}", "write a date such as 2026-11-01")
