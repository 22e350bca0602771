"""The manifest of a class of nodes: files, packages, accounts, units.

Role join writes it on the controller, of the lists that the roles write their nodes from. Only what differs from node
to node is left open: `@isthmus.address@` in a text is filled in by the node, and an entry with `when` is for a host of
that kind alone. All of it is secret, since some of its files are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

SCHEMA = 1
_FIELD = re.compile(r"@isthmus\.([a-z]+)@")

Entry = Mapping[str, Any]


class ManifestError(Exception):
    """It was made for another version of Isthmus, or is damaged."""


class Field(StrEnum):
    """What the node knows of itself."""

    NAME = "name"
    ADDRESS = "address"
    RESOLVER = "resolver"


class When(StrEnum):
    """Of which host an entry is."""

    ALWAYS = ""
    MACHINE = "machine"
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of it.

    Attributes:
        schema: of this class.
        kind: the class of nodes.
        cluster: name and id.
        release: of Isthmus, as in /opt/isthmus/program.
        nodes: name -> address of those that may join.
        packages: name -> version, "" for any.
        hostname: whether the node is given its name.
        groups: name, gid.
        users: name, uid, groups, password (hash), shell, comment.
        daemons: accounts of daemons, whose number is the host's own.
        files: as of the module host_files; `base64` in place of `content` where that is no text.
        edits: path, kind, and what that kind needs: files of which a part is the cluster's.
        same: path, mode: what every host of the cluster has as the controller has it.
        certificates: names of files of a key and a certificate.
        certificate_days: how long the latter last.
        renew_days: one with fewer days left is made new.
        alternatives: name -> path.
        masked: units that must not run.
        mounts: path, source, type, options.
        units: name, files: what has to run, in this order, and what it reads at its start.
    """

    schema: int
    kind: str
    cluster: Mapping[str, str]
    release: str
    nodes: Mapping[str, str]
    packages: Mapping[str, str]
    hostname: bool
    groups: tuple[Entry, ...]
    users: tuple[Entry, ...]
    daemons: tuple[str, ...]
    files: tuple[Entry, ...]
    edits: tuple[Entry, ...]
    same: tuple[Entry, ...]
    certificates: tuple[str, ...]
    certificate_days: int
    renew_days: int
    alternatives: Mapping[str, str]
    masked: tuple[str, ...]
    mounts: tuple[Entry, ...]
    units: tuple[Entry, ...]


_KINDS: dict[str, type] = {"int": int, "str": str, "bool": bool}


def of(document: Mapping[str, Any]) -> Manifest:
    """Read a manifest's JSON.

    Raises:
        ManifestError: it is none of this version.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ManifestError(f"a manifest of schema {SCHEMA} was expected; run playbooks/join.yml with this version")
    wanted = {field.name for field in fields(Manifest)}
    if wanted != set(document):
        raise ManifestError(f"the manifest has other fields ({sorted(wanted ^ set(document))}); run playbooks/join.yml")
    values: dict[str, Any] = {}
    for field in fields(Manifest):
        kind = _KINDS.get(str(field.type), dict if str(field.type).startswith("Mapping") else list)
        if not isinstance(document[field.name], kind):
            raise ManifestError(f"the manifest's {field.name} is of another kind; run playbooks/join.yml")
        values[field.name] = tuple(document[field.name]) if kind is list else document[field.name]
    return Manifest(**values)


def parse(text: bytes | str) -> Manifest:
    """Read a manifest's text; see `of`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ManifestError("the manifest is no JSON; run playbooks/join.yml") from error
    return of(document)


def filled(value: Any, known: Mapping[Field, str]) -> Any:
    """Put what a node knows of itself into all texts of a value.

    Raises:
        ManifestError: a text has a field that this version does not know.
    """
    if isinstance(value, str):
        return _FIELD.sub(lambda found: _field(found[1], known), value)
    if isinstance(value, Mapping):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, known) for each in value]
    return value


def applies(entry: Entry, kinds: set[When]) -> bool:
    """Return whether an entry is for a host of these kinds."""
    try:
        return When(entry.get("when", "")) in kinds | {When.ALWAYS}
    except ValueError as error:
        raise ManifestError(f"the manifest has entries of a kind {entry['when']!r}; make the image again") from error


def _field(name: str, known: Mapping[Field, str]) -> str:
    try:
        return known[Field(name)]
    except ValueError as error:
        raise ManifestError(f"the manifest has a field {name!r}; make the image again") from error
