"""The recipe of a Debian package: a folder of build/ with its sources and its build script.

recipe.yml has version, suite, date, source and packages, and optionally mark and go; package.sh builds inside a Debian
of that suite; debian/ is the package's metadata for dpkg.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import yaml

from isthmus.artifacts.table import SHA256
from isthmus.filters.errors import InputError
from isthmus.filters.suggest import check_keys
from isthmus.model.programs import OWN_PACKAGES

FILE, SCRIPT, CONTROL = "recipe.yml", "package.sh", "debian"
KEYS = ("version", "suite", "date", "source", "packages")
OPTIONAL = {"mark": "setuid", "go": True}
SOURCE_KEYS = ("sha256", "urls")
LOCK = Path("locks", "build.txt")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe, parsed and validated.

    Attributes:
        folder: its path, two levels below the project's tree.
        epoch: modification time of the package's files, seconds since 1970.
        sha256: hex digest of the source's archive.
        urls: of the archive; `{mirror}` stands for the Debian mirror in use.
        packages: build dependencies from the suite.
        mark: of the package's version, by which it is known as the project's own.
        go: the source is a Go module, and is built with the pinned Go.
        key: 32 hex digits over everything that the package is made of.
    """

    folder: Path
    version: str
    suite: str
    epoch: int
    sha256: str
    urls: list[str]
    packages: list[str]
    mark: str
    go: bool
    key: str

    @property
    def package_version(self) -> str:
        """The version for dpkg: above Debian's of the same release, and different for each recipe."""
        return f"{self.version}+{self.mark}.{self.key[:12]}"

    @property
    def lock(self) -> Path:
        """The lock file that pins Go."""
        return self.folder.parents[1] / LOCK

    def __str__(self) -> str:
        """Return the name for messages."""
        return f"{self.folder.name} {self.version} with {self.mark}"


def load(folder: Path) -> Recipe:
    """Read a recipe.

    Raises:
        InputError: it cannot be read, or is incomplete; the message begins with the file.
    """
    file = folder / FILE
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        check_keys("the recipe", document, (*KEYS, *OPTIONAL), KEYS)
        check_keys("its source", document["source"], SOURCE_KEYS, SOURCE_KEYS)
        return _recipe(folder, document, _key(folder, document))
    except InputError as error:
        raise InputError(f"{file}: {error.problem}", error.remedy) from error
    except (OSError, yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{file} is no recipe: {error}", "restore it") from error


def _recipe(folder: Path, document: Mapping[str, Any], key: str) -> Recipe:
    sha256 = str(document["source"]["sha256"])
    if not SHA256.fullmatch(sha256):
        raise InputError(
            f"sha256 is no SHA-256: {sha256!r} ({len(sha256)} characters)", "copy the 64 hex digits of Debian's .dsc"
        )
    day = datetime.combine(date.fromisoformat(str(document["date"])), time(), UTC)
    urls, packages = list(document["source"]["urls"]), list(document["packages"])
    mark, go = (document.get(key, default) for key, default in OPTIONAL.items())
    if f"+{mark}." not in OWN_PACKAGES:
        raise InputError(f"mark {mark!r} is none of the project's own", "add it to OWN_PACKAGES of model/programs.py")
    version, suite = str(document["version"]), str(document["suite"])
    return Recipe(folder, version, suite, int(day.timestamp()), sha256, urls, packages, mark, go, key)


def _key(folder: Path, document: Mapping[str, Any]) -> str:
    """The source's checksum is part of the key, its address is not."""
    parts = {**document, "source": document["source"]["sha256"], "machine": os.uname().machine}
    files = [folder / SCRIPT, *sorted((folder / CONTROL).iterdir())]
    files += [folder.parents[1] / LOCK] if document.get("go", OPTIONAL["go"]) else []
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in files]
    return hashlib.sha256(json.dumps([parts, texts], sort_keys=True, default=str).encode()).hexdigest()[:32]
