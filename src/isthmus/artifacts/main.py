"""The composition root: from a task's arguments to programs in the cache, as Ansible's result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isthmus.artifacts import table
from isthmus.artifacts.errors import ChecksumError
from isthmus.artifacts.obtain import Site, missing, obtain
from isthmus.artifacts.store import Store
from isthmus.artifacts.ways import Mirror, Progress, Workshop
from isthmus.clients.build.golang import Limits
from isthmus.filters.errors import InputError
from isthmus.filters.suggest import check_keys
from isthmus.model.programs import Arch, Program, Way

ARGUMENTS = ("table", "cache", "programs", "order", "mirror", "arch", "jobs", "memory_mib")
# The arguments that decide which file a name stands for.
ASKED = ("table", "cache", "order", "mirror", "arch")


def run(arguments: Mapping[str, Any], progress: Progress, *, dry: bool = False) -> dict[str, Any]:
    """Obtain programs; return Ansible's result, with `programs`: name -> path, version, sha256, way, origin, took_s.

    Args:
        arguments: all of ARGUMENTS, and optionally `known`: the result of an earlier task of the same run, whose
            programs are reused where the other arguments are equal.
        progress: called with a line of progress.
        dry: change nothing, return whether something would change; programs are those in the cache.
    """
    try:
        check_keys("artifacts_obtain", arguments, (*ARGUMENTS, "known"))
        picked = table.pick(table.load(Path(arguments["table"])), arguments["programs"])
        known = _known(arguments, picked)
        programs = [program for program in picked if program.name not in known]
        site = _site(arguments)
        absent = missing(programs, site) if dry else []
        obtained = obtain([program for program in programs if program not in absent], site, progress)
    except (InputError, ChecksumError, OSError) as error:
        return {"failed": True, "msg": str(error)}
    changed = bool(absent) or any(one.way != Way.CACHE for one in obtained)
    document = {
        one.name: {**asdict(one), "path": str(one.path), "way": one.way.value, "origin": one.origin.value}
        for one in obtained
    }
    asked = {key: arguments[key] for key in ASKED}
    return {"changed": changed, "programs": {**known, **document}, "asked": asked}


def _known(arguments: Mapping[str, Any], programs: Iterable[Program]) -> dict[str, Any]:
    earlier = arguments.get("known") or {}
    if earlier.get("asked") != {key: arguments[key] for key in ASKED}:
        return {}
    rows = earlier["programs"]
    return {one.name: rows[one.name] for one in programs if one.name in rows and Path(rows[one.name]["path"]).is_file()}


def _site(arguments: Mapping[str, Any]) -> Site:
    cache = Path(arguments["cache"])
    limits = Limits(int(arguments["jobs"]) or os.cpu_count() or 1, int(arguments["memory_mib"]))
    return Site(
        table.ways(arguments["order"]),
        Store(cache / "programs"),
        Workshop(Path(arguments["table"]).parent, cache / "go", limits),
        Mirror.open(arguments["mirror"]) if arguments["mirror"] else None,
        Arch(arguments["arch"]),
    )
