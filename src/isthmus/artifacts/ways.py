"""The ways to a program. Each writes it to a path or raises why it cannot; a wrong checksum stops the run."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.artifacts.errors import WayError
from isthmus.artifacts.store import check
from isthmus.artifacts.table import MODULES
from isthmus.clients.build import golang
from isthmus.clients.build.download import DownloadError, fetch, read
from isthmus.clients.process import ProcessError
from isthmus.filters.errors import InputError
from isthmus.model.programs import MIRROR_INDEX, MIRROR_SCHEMA, Arch, Program

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Mirror:
    """An administrator's folder or HTTP server with `programs.json` and the files that it names.

    Attributes:
        address: a path, or an http(s) URL.
        programs: name -> {version, arch, file, sha256}, as the index has them.
    """

    address: str
    programs: dict[str, Any]

    @classmethod
    def open(cls, address: str) -> Mirror:
        """Read the index.

        Raises:
            InputError: it is missing, or has another schema.
        """
        index = f"{address.rstrip('/')}/{MIRROR_INDEX}"
        remedy = "point artifacts_mirror at a folder or server that `make bundle` has filled"
        try:
            text = read(index) if _remote(address) else Path(index).read_text(encoding="utf-8")
            known = json.loads(text)
            schema, programs = known["schema"], {row["name"]: row for row in known["programs"]}
        except (OSError, DownloadError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{index} is no index of programs: {error!r}", remedy) from error
        if schema != MIRROR_SCHEMA:
            raise InputError(f"{index} has schema {schema}, not {MIRROR_SCHEMA}", remedy)
        return cls(address.rstrip("/"), programs)

    def get(self, program: Program, arch: Arch, path: Path, progress: Progress) -> None:
        """Copy or download the program."""
        row = self.programs.get(program.name)
        if not row:
            raise WayError(f"{self.address} does not have it")
        if (row["version"], row["arch"]) != (program.version, arch):
            raise WayError(f"{self.address} has {row['version']} for {row['arch']}")
        file = f"{self.address}/{row['file']}"
        try:
            if _remote(self.address):
                fetch(file, path, log=progress)
            else:
                shutil.copyfile(file, path)
        except (OSError, DownloadError) as error:
            raise WayError(str(error)) from error
        check(path, row["sha256"], f"ask the administrator of {self.address}", file)


def _remote(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def from_upstream(program: Program, arch: Arch, path: Path, progress: Progress) -> None:
    """Download the official release file and extract the program."""
    upstream = program.upstream
    if not upstream or arch not in upstream.sha256:
        raise WayError(f"no confirmed checksum of an official release for {arch}")
    names = {"program": program.name, "version": program.version, "arch": arch.value}
    url = upstream.url.format_map(names)
    release = path.with_name("release")
    try:
        fetch(url, release, log=progress)
    except DownloadError as error:
        raise WayError(str(error)) from error
    check(release, upstream.sha256[arch], "do not use it; compare the checksum with the release page", url)
    if upstream.member is None:
        release.rename(path)
        return
    _extract(release, upstream.member.format_map(names), path, url)


def _extract(archive: Path, member: str, path: Path, name: str) -> None:
    try:
        with tarfile.open(archive) as tar:
            content = tar.extractfile(tar.getmember(member))
            if content is None:
                raise WayError(f"{name}: {member} is no file")
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)
    except (KeyError, tarfile.TarError) as error:
        raise WayError(f"{name} has no {member}: {error}") from error


@dataclass(frozen=True)
class Workshop:
    """The build environment of programs.

    Attributes:
        root: the project's tree, with build/go and locks/build.txt.
        cache: Go itself, its modules and its build cache, one for all programs.
        limits: of one build; builds run one after another.
    """

    root: Path
    cache: Path
    limits: golang.Limits

    def get(self, program: Program, arch: Arch, path: Path) -> None:
        """Build the program, or copy the file out of its module."""
        plan = program.build
        if not plan:
            raise WayError("no Go module is known")
        try:
            go = golang.Go(golang.find(self.root / "locks" / "build.txt", self.cache), self.cache, self.limits)
            module = self.root / MODULES / plan.module
            if plan.file:
                go.copy(plan, module, path)
            else:
                go.build(plan, module, path, version=program.version, arch=arch)
        except ProcessError as error:
            raise WayError(str(error)) from error
