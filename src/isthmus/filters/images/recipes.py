"""Recipes of container images, and their keys.

A recipe is a folder with recipe.yml (suite, variant of mmdebstrap, packages, command, environment) and, where
packages alone don't do, customize.sh; `base` names the recipe whose customize.sh runs before, `programs` third-party
programs and their paths, `sources` folders of this tree and their paths in the image, `wheels` lock files of this tree
(locks/NAME.txt) and the prefix below which pip installs what they name, `keep_run` that what packages and scripts put
into /run stays there. The package sources are not part of the key.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
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
KEYS = (*REQUIRED, "environment", "entrypoint", "base", "programs", "sources", "wheels", "tags", "keep_run")
BUILD = "build.sh"
VARIANTS = ("extract", "essential", "apt")
# The default tag of Apptainer and skopeo.
LATEST = "latest"
# mmdebstrap calls only this hook for variants that configure nothing.
_HOOKS = {"extract": "extract"}
# mmdebstrap copies them from the host; container runtimes mount their own over them.
_THIS_MACHINES = ("hostname", "resolv.conf")
# Licences are kept.
_LEFT_OUT = (
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*",
)


def registry_recipes(
    folder: str, names: Iterable[str], date: str, cache: str, programs: Mapping[str, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Parse recipes.

    Args:
        folder: build/images.
        names: of the recipes.
        date: YYYY-MM-DD, the date of every file in the images.
        cache: folder of the built images.
        programs: obtained by role artifacts.

    Returns:
        Per recipe its own keys and: name, key (16 hex digits), tags, archive (path), epoch (seconds), folder,
        hooks (commands), script (path of build.sh).

    Raises:
        InputError: for an unknown name, an incomplete recipe, a program that was not obtained, or an invalid date.
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
    """Return the command that builds a recipe's OCI archive from this machine's package sources.

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
    """Return the environment of build.sh, which is the same on any machine and part of the key."""
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
    wheels = [_wheels(file, build, name, where) for name, where in recipe.get("wheels", {}).items()]
    parts = [recipe["suite"], epoch, _arguments(recipe), [path.read_text() for path in scripts]]
    # A program's content is part of the key, its path on this machine is not.
    parts += [[where, sha] for _, where, sha in (*put, *wheels)]
    key = sha256(json.dumps(parts).encode()).hexdigest()[:16]
    before, own = scripts[1 : 1 + len(base)], scripts[1 + len(base) :]
    copied = [f'install -D -m 755 {path} "$1{to}"' for path, to, _ in put]
    return {
        **recipe,
        "name": folder.name,
        "key": key,
        "tags": [key, LATEST, *recipe.get("tags", [])],
        "epoch": epoch,
        "folder": str(folder),
        "script": str(build),
        "hooks": [*map(str, before), *copied, *(_pip(lock, to) for lock, to, _ in wheels), *map(str, own)],
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


def _wheels(file: Path, build: Path, name: str, where: str) -> tuple[str, str, str]:
    lock = build.parents[2] / "locks" / f"{name}.txt"
    if not lock.is_file():
        raise InputError(f"{file} needs {lock.name} in locks", "make it with `make lock`")
    return str(lock), where, sha256(lock.read_bytes()).hexdigest()


def _pip(lock: str, where: str) -> str:
    """Return the command by which pip installs a lock file's packages below a prefix of the image."""
    words = (
        *(
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        ),
        *("--no-deps", "--no-compile", "--only-binary=:all:", "--require-hashes", "--requirement", lock),
    )
    return f'{shlex.join(words)} --prefix "$1{where}"'
