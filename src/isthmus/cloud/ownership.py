"""Ownership of resources: by the mark in them, or by the record of what this deployer created. Pure.

The record is a file beside the cluster's secrets. It is written before and after each batch of calls: before, with the
names of resources that cannot bear a mark and are about to be created, so that the next run owns what a killed run
created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.model.cloud import NAMED, UNMARKED, Found, Kind, Made

SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """What this deployer has created.

    Attributes:
        identity: random, generated once; part of every mark.
        project: the cloud's project; "" before the first run.
        made: (kind, name) -> id.
        begun: names of unmarked resources that were about to be created.
        addresses: node -> its floating IP.
        region: the cloud's region; "" before the first run, and in records of earlier releases.
    """

    identity: str
    project: str = ""
    made: Mapping[tuple[Kind, str], str] = ()  # type: ignore[assignment]
    begun: frozenset[tuple[Kind, str]] = frozenset()
    addresses: Mapping[str, str] = ()  # type: ignore[assignment]
    region: str = ""

    def with_made(self, found: Iterable[Made]) -> Record:
        """Return the record with created resources."""
        one = {(made.kind, made.name): made.id for made in found}
        return replace(self, made={**dict(self.made), **one}, begun=self.begun - one.keys())

    def without(self, gone: Iterable[tuple[Kind, str]]) -> Record:
        """Return the record without deleted resources."""
        names = set(gone)
        return replace(
            self,
            made={key: value for key, value in dict(self.made).items() if key not in names},
            begun=self.begun - names,
        )


def to_json(record: Record) -> dict[str, Any]:
    """Serialize a record."""
    rows = [{"kind": kind.value, "name": name, "id": id_} for (kind, name), id_ in sorted(dict(record.made).items())]
    begun = [{"kind": kind.value, "name": name} for kind, name in sorted(record.begun)]
    return {
        "schema": SCHEMA,
        "identity": record.identity,
        "project": record.project,
        "region": record.region,
        "made": rows,
        "begun": begun,
        "addresses": dict(record.addresses),
    }


def from_json(text: Mapping[str, Any], place: str) -> Record:
    """Parse a record.

    Raises:
        InputError: it is not one of this version.
    """
    try:
        if text["schema"] != SCHEMA:
            raise InputError(f"{place} has schema {text['schema']}", "use the version of Isthmus that wrote it")
        return Record(
            str(text["identity"]),
            str(text["project"]),
            {(Kind(row["kind"]), str(row["name"])): str(row["id"]) for row in text["made"]},
            frozenset((Kind(row["kind"]), str(row["name"])) for row in text["begun"]),
            {str(node): str(address) for node, address in text["addresses"].items()},
            str(text.get("region", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{place} is damaged: {error!r}", "restore it from a backup") from error


def mark(cluster: str, identity: str) -> str:
    """Return the mark of a cluster's resources."""
    return f"isthmus.{cluster}.{identity}"


def is_ours(found: Found, record: Record, ours: str) -> bool:
    """Return whether this deployer created a resource for this cluster."""
    if found.kind not in UNMARKED:
        return found.mark == ours
    key = (found.kind, found.name)
    return dict(record.made).get(key) == found.id or key in record.begun


def refuse_strangers(found: Sequence[Found], names: Iterable[tuple[Kind, str]], record: Record, ours: str) -> None:
    """Refuse names that foreign resources use, and marks of this cluster by another deployer.

    Raises:
        InputError: for the first one.
    """
    cluster = ours.rpartition(".")[0]
    wanted = set(names)
    strangers = [one for one in found if not is_ours(one, record, ours)]
    for one in strangers:
        if one.mark.rpartition(".")[0] == cluster:
            identity = one.mark.rpartition(".")[2]
            raise InputError(
                f"{one.kind} {one.name} ({one.id}) belongs to a cluster of this name that another deployer created",
                f"take another cluster_name; or, if its record is lost, set provider_openstack_identity: {identity}",
            )
    # Afterwards: a key pair of such a cluster has no mark.
    for one in strangers:
        if one.kind in NAMED and (one.kind, one.name) in wanted:
            raise InputError(
                f"{one.kind} {one.name} ({one.id}) exists and is not this cluster's",
                "remove it, or choose another cluster_name",
            )
