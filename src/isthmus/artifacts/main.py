"""The composition root: from a task's arguments to programs in the cache, as Ansible's result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isthmus.artifacts import table
from isthmus.artifacts.errors import ChecksumError
from isthmus.artifacts.obtain import Site, missing, obtain
from isthmus.artifacts.store import Store
from isthmus.artifacts.ways import Mirror, Tell, Workshop
from isthmus.clients.golang import Limits
from isthmus.filters.errors import InputError
from isthmus.filters.suggest import check_keys
from isthmus.model.programs import Arch, Way

ARGUMENTS = ("table", "cache", "programs", "order", "mirror", "arch", "jobs", "memory_mib")


def run(arguments: Mapping[str, Any], tell: Tell, *, dry: bool = False) -> dict[str, Any]:
    """Obtain programs; return Ansible's result, with `programs`: name -> path, version, sha256, way, origin, took_s.

    Args:
        arguments: all of ARGUMENTS.
        tell: takes a line of progress.
        dry: change nothing but say whether something would change; programs are those that the cache has.
    """
    try:
        check_keys("artifacts_obtain", arguments, ARGUMENTS)
        known = table.load(Path(arguments["table"]))
        programs = table.pick(known, arguments["programs"])
        site = _site(arguments)
        absent = missing(programs, site) if dry else []
        obtained = obtain([program for program in programs if program not in absent], site, tell)
    except (InputError, ChecksumError, OSError) as error:
        return {"failed": True, "msg": str(error)}
    changed = bool(absent) or any(one.way != Way.CACHE for one in obtained)
    told = {one.name: {**asdict(one), "path": str(one.path), "way": one.way.value} for one in obtained}
    return {"changed": changed, "programs": told}


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
