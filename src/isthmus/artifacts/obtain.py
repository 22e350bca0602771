"""Obtains programs one at a time: by the first way that works, in the site's order.

Builds share Go's cache and the machine's memory, so they run one after another; a lock per recipe makes a second run
wait for the first and reuse its result.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from isthmus.artifacts.errors import ObtainError, WayError
from isthmus.artifacts.store import Entry, Store
from isthmus.artifacts.table import MODULES
from isthmus.artifacts.ways import Mirror, Progress, Workshop, from_upstream
from isthmus.model.programs import Arch, Obtained, Program, Way
from isthmus.support.ticking import ticking


@dataclass(frozen=True)
class Site:
    """The sources and the destination of programs.

    Attributes:
        order: the ways to try.
        store: the cache.
        workshop: where they are built.
        mirror: the administrator's, if there is one.
        arch: the nodes' architecture.
    """

    order: list[Way]
    store: Store
    workshop: Workshop
    mirror: Mirror | None
    arch: Arch


def obtain(programs: Iterable[Program], site: Site, progress: Progress) -> list[Obtained]:
    """Obtain programs, with a line of progress for each.

    Raises:
        ObtainError: all ways to one of them failed; the message has each way's error.
        ChecksumError: a file has another checksum.
    """
    return [_obtain_one(program, site, progress) for program in programs]


def missing(programs: Iterable[Program], site: Site) -> list[Program]:
    """Return the programs that are not in the cache."""
    return [program for program in programs if not _cached(recipe_key(program, site), site)]


def recipe_key(program: Program, site: Site) -> str:
    """Return the key of a program: 32 hex digits over everything that its content depends on."""
    origin: dict[str, Any] = {"arch": site.arch, **asdict(replace(program, licence="", source=""))}
    del origin["on_request"]
    if program.build:
        # Keys of other programs stay as they are in existing caches.
        for kind in ("test", "file"):
            if not origin["build"][kind]:
                del origin["build"][kind]
        folder = site.workshop.root / MODULES / program.build.module
        files = [folder / name for name in ("go.mod", "go.sum", "tools.go")]
        origin["files"] = [
            file.read_text(encoding="utf-8") for file in (*files, site.workshop.root / "locks/build.txt")
        ]
    return hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:32]


def _cached(key: str, site: Site) -> Entry | None:
    entry = site.store.find(key) if Way.CACHE in site.order else None
    # An entry that was obtained by a way which the site excludes is not used.
    return entry if entry and (entry.way in site.order or site.order == [Way.CACHE]) else None


def _obtain_one(program: Program, site: Site, progress: Progress) -> Obtained:
    started = time.monotonic()
    key = recipe_key(program, site)
    with site.store.lock(key):
        way, entry = _first(program, key, site, progress)
    took_s = time.monotonic() - started
    progress(f"{program}: {way}, {took_s:.1f} s")
    return Obtained(
        program.name, program.version, site.store.blob(entry), entry.sha256, way, entry.way, round(took_s, 2)
    )


def _first(program: Program, key: str, site: Site, progress: Progress) -> tuple[Way, Entry]:
    said = []
    for way in site.order:
        try:
            if way == Way.CACHE:
                entry = _cached(key, site)
                if not entry:
                    raise WayError("not there")
                return way, entry
            with site.store.workspace(program.name) as folder:
                _carry_out(way, program, site, folder / program.name, progress)
                return way, site.store.keep(key, program.name, way, folder / program.name)
        except WayError as error:
            said.append(f"{way}: {error}")
    raise ObtainError(str(program), said)


def _carry_out(way: Way, program: Program, site: Site, path: Path, progress: Progress) -> None:
    if way == Way.MIRROR:
        if not site.mirror:
            raise WayError("artifacts_mirror is not set")
        site.mirror.get(program, site.arch, path, progress)
    elif way == Way.UPSTREAM:
        from_upstream(program, site.arch, path, progress)
    else:
        with (
            FileLock(site.store.root / "locks" / "go"),
            ticking(lambda so_far_s: progress(f"{program}: building, {so_far_s:.0f} s")),
        ):
            site.workshop.get(program, site.arch, path)
