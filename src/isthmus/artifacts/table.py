"""Parser of `artifacts.yml`, which is validated as a whole before anything is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from isthmus.filters.errors import InputError
from isthmus.filters.suggest import check_keys, unknown
from isthmus.model.programs import Arch, Build, Program, Upstream, Way

SCHEMA = 1
SHA256 = re.compile(r"[0-9a-f]{64}")
MODULES = Path("build", "go")
# A Go module without releases has versions of its commits (go.dev/ref/mod, "Pseudo-versions").
VERSION = re.compile(r"\d+\.\d+(\.\d+(-\d{14}-[0-9a-f]{12})?)?")


def load(path: Path) -> dict[str, Program]:
    """Read the table; return its programs by name, in its order.

    Raises:
        InputError: it cannot be read, or a row of it is wrong; the message begins with the file.
    """
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
        check_keys("the table", table, ("schema", "releases"), ("schema", "releases"))
        if table["schema"] != SCHEMA:
            raise InputError(f"schema {table['schema']} is unknown", f"this Isthmus reads schema {SCHEMA}")
        programs = [one for name, row in table["releases"].items() for one in _programs(name, row, path.parent)]
    except (OSError, yaml.YAMLError, AttributeError, TypeError) as error:
        raise InputError(f"{path} is no table of programs: {error}", "restore it") from error
    except InputError as error:
        raise InputError(f"{path}: {error.problem}", error.remedy) from error
    known = {program.name: program for program in programs}
    if len(known) < len(programs):
        raise InputError(f"{path}: a program is listed twice", "keep one")
    return known


def pick(table: Mapping[str, Program], names: Iterable[str]) -> list[Program]:
    """Return the named programs; without names all but those on request.

    Raises:
        InputError: the table lacks one.
    """
    wanted = list(names) or [name for name, program in table.items() if not program.on_request]
    for name in wanted:
        if name not in table:
            raise unknown("program in artifacts_programs", name, table)
    return [table[name] for name in wanted]


def ways(names: Iterable[str]) -> list[Way]:
    """Parse the order of ways.

    Raises:
        InputError: a way is unknown, named twice, or there is none.
    """
    order = list(names)
    for name in order:
        if name not in [*Way]:
            raise unknown("way in artifacts_order", name, Way)
    if not order or len(set(order)) < len(order):
        raise InputError(f"artifacts_order is {order}", f"name each way at most once, and at least one of {[*Way]}")
    return [Way(name) for name in order]


def _programs(release: str, row: Mapping[str, Any], root: Path) -> Iterator[Program]:
    needed = ("version", "licence", "source", "programs")
    check_keys(release, row, (*needed, "upstream", "ldflags", "cgo", "on_request"), needed)
    if not VERSION.fullmatch(str(row["version"])):
        raise InputError(f"{release} has the version {row['version']!r}", "name one released version, such as 1.2.3")
    check_keys(f"{release}'s upstream", row.get("upstream") or {}, ("url", "sha256"))
    for name, own in row["programs"].items():
        check_keys(name, own, ("package", "member", "sha256", "test", "file"))
        upstream = _upstream(name, row.get("upstream"), own)
        build = _build(release, row, own, root) if "package" in own else None
        if not (upstream or build):
            raise InputError(f"{name} has neither upstream nor package", "say where it comes from")
        values = (row["version"], row["licence"], row["source"])
        yield Program(name, *values, upstream, build, row.get("on_request", False))


def _upstream(name: str, release: Mapping[str, Any] | None, own: Mapping[str, Any]) -> Upstream | None:
    if not release:
        return None
    digests = own.get("sha256") or release.get("sha256")
    if not digests:
        raise InputError(f"{name} has an upstream without sha256", "add the confirmed checksum, or leave upstream out")
    for arch, digest in digests.items():
        if arch not in [*Arch]:
            raise unknown(f"machine of {name}'s sha256", str(arch), Arch)
        if not SHA256.fullmatch(str(digest)):
            raise InputError(
                f"{name}'s sha256 for {arch} is no SHA-256: {digest!r} ({len(str(digest))} characters)",
                "copy the 64 hex digits from the release's own checksum file",
            )
    return Upstream(release["url"], {Arch(arch): digest for arch, digest in digests.items()}, own.get("member"))


def _build(release: str, row: Mapping[str, Any], own: Mapping[str, Any], root: Path) -> Build:
    for file in ("go.mod", "go.sum", "tools.go"):
        if not (root / MODULES / release / file).is_file():
            raise InputError(f"{root / MODULES / release / file} is missing", f"make the tool module of {release}")
    values = (row.get("ldflags", ""), row.get("cgo", False), own.get("test", False), own.get("file", ""))
    return Build(release, own["package"], *values)
