"""Filters of role bundle: which host downloads which package, and the index of a mirror."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isthmus.model.programs import MIRROR_SCHEMA, OWN_PACKAGES
from isthmus.support.modules import dpkg

# The version in brackets is the one to be replaced.
_INSTALLS = re.compile(r"Inst (?P<name>\S+) (\[\S+\] )?\((?P<version>\S+) ")


def bundle_shares(hosts: Sequence[str], hostvars: Mapping[str, Mapping[str, Any]], host: str) -> list[str]:
    """Return the packages `name=version` that a host downloads: those in a repository that no host before it has.

    Args:
        hosts: all of them, in one order.
        hostvars: Ansible's; `__bundle_installed.stdout_lines` answers `bundle_question`,
            `__bundle_more.stdout_lines` what apt-get would install additionally, where it was asked.
        host: one of them.
    """
    before: set[str] = set()
    for other in hosts:
        has = _installed(hostvars[other]["__bundle_installed"]["stdout_lines"])
        has |= _to_come(hostvars[other]["__bundle_more"].get("stdout_lines", []))
        if other == host:
            return sorted(has - before)
        before |= has
    return []


def bundle_question(names: Sequence[str]) -> list[str]:
    """Return the command that asks a host for its packages; no names: for all."""
    return dpkg.question(names)


def bundle_index(programs: Mapping[str, Mapping[str, Any]], arch: str) -> dict[str, Any]:
    """Return programs.json, the index of a mirror whose files are named after the programs."""
    rows = [
        {"name": name, "version": one["version"], "arch": arch, "file": name, "sha256": one["sha256"]}
        for name, one in programs.items()
    ]
    return {"schema": MIRROR_SCHEMA, "programs": rows}


def _installed(lines: Sequence[str]) -> set[str]:
    there = dpkg.installed("\n".join(lines)).values()
    return {f"{each.name}={each.version}" for each in there if not any(own in each.version for own in OWN_PACKAGES)}


def _to_come(lines: Sequence[str]) -> set[str]:
    return {f"{found['name']}={found['version']}" for line in lines if (found := _INSTALLS.match(line))}


FILTERS: dict[str, Callable[..., object]] = {
    "bundle_index": bundle_index,
    "bundle_question": bundle_question,
    "bundle_shares": bundle_shares,
}
