"""Role join: one manifest of a node, merged from each role's part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isthmus.filters.errors import InputError

_EMPTY: dict[str, Any] = {
    "schema": 1,
    "cluster": {},
    "release": "",
    "hostname": False,
    "groups": [],
    "users": [],
    "daemons": [],
    "files": [],
    "edits": [],
    "same": [],
    "certificates": [],
    "certificate_days": 365,
    "renew_days": 30,
    "alternatives": {},
    "masked": [],
    "mounts": [],
    "units": [],
}


def join_manifest(
    parts: Iterable[Mapping[str, Any]], kind: str, nodes: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Merge the roles' parts in the order of site.yml; slurmd, which takes jobs, is started last.

    Args:
        parts: of each role: fields of `isthmus.node.manifest.Manifest`, `packages` as a list of names.
        kind: the class of nodes.
        nodes: name -> address of nodes that may join.
        versions: package -> version, of those that are pinned.

    Raises:
        InputError: a part has an unknown field, or two have the same path.
    """
    whole = {name: value.copy() if isinstance(value, list | dict) else value for name, value in _EMPTY.items()}
    packages: set[str] = set()
    for part in parts:
        for name, value in part.items():
            if name == "packages":
                packages |= {*value}
            elif name not in whole:
                raise InputError(f"a role describes a node by {name!r}", f"use one of {', '.join(_EMPTY)}")
            elif isinstance(whole[name], list):
                whole[name] += value
            elif isinstance(whole[name], dict):
                whole[name] |= value
            else:
                whole[name] = type(whole[name])(value)
    _refuse_twice(whole["files"])
    units = sorted(whole["units"], key=lambda unit: unit["name"] == "slurmd")
    wanted = {name: versions.get(name, "") for name in sorted(packages)}
    return {**whole, "kind": kind, "nodes": dict(nodes), "packages": wanted, "units": units}


def _refuse_twice(files: Iterable[Mapping[str, Any]]) -> None:
    seen: dict[str, Mapping[str, Any]] = {}
    for entry in files:
        before = seen.setdefault(entry["path"], entry)
        if before != entry and before.get("when", "") == entry.get("when", ""):
            raise InputError(f"two roles describe {entry['path']} otherwise", "let one of them have it")


FILTERS: dict[str, Callable[..., object]] = {"join_manifest": join_manifest}
