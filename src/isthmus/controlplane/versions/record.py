"""The versions that ran a user's data, in a file beside them: what a later start may begin with.

A version is recorded before its programs may write. A move to another one has a copy of the data from before it until
the new version serves; `failure` together with `move` says that the copy is to come back.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.versions.plan import UNRECORDED, Versions
from isthmus.support import durable

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Move:
    """A move that has not ended.

    Attributes:
        to: the versions it goes to.
        file: name of the file of the image that runs.
        reached: its versions, which may have written already.
        tries: starts that tried.
    """

    to: Versions
    file: str
    reached: Versions
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """A move that failed.

    Attributes:
        kubernetes: the version that did not become ready.
        file: name of its image's file, which is not tried again by itself; empty where the image is not the reason.
        why: the reason.
        time: ISO 8601.
    """

    kubernetes: str
    file: str
    why: str
    time: str


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of the data.

    Attributes:
        versions: that served the data last.
        run: the run of a job that did so, or does.
        move: one that has not ended.
        failure: the last one that failed, until another one succeeds.
    """

    versions: Versions
    run: str = ""
    move: Move | None = None
    failure: Failure | None = None

    @property
    def newest(self) -> Versions:
        """The versions that may have written to the data."""
        return self.move.reached if self.move else self.versions


def read(layout: Layout) -> Record | None:
    """Return the record; None for data of before there were records, and for a cluster without data.

    Raises:
        ControlPlaneError: it cannot be read.
    """
    try:
        document = json.loads(layout.versions.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']!r} is not {SCHEMA}")
        move, failure = document["move"], document["failure"]
        return Record(
            _versions(document["versions"]),
            str(document["run"]),
            _move(move) if move else None,
            Failure(**{name: str(failure[name]) for name in Failure.__slots__}) if failure else None,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = f"remove it, and your data count as those of Kubernetes {UNRECORDED.kubernetes}"
        raise ControlPlaneError(f"{layout.versions} cannot be read ({error!r}); {remedy}") from error


def write(layout: Layout, record: Record) -> None:
    """Write the record."""
    durable.write(layout.versions, json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1) + "\n", 0o600)


def of_data(layout: Layout) -> Record | None:
    """Return the record of the data there are; None for a cluster without data.

    Raises:
        ControlPlaneError: it cannot be read.
    """
    found = read(layout)
    if found is None and (layout.claim.exists() or (layout.etcd / "member").is_dir()):
        return Record(UNRECORDED)
    return found


def _versions(document: Any) -> Versions:
    return Versions(str(document["kubernetes"]), str(document["etcd"]))


def _move(document: Any) -> Move:
    return Move(
        _versions(document["to"]), str(document["file"]), _versions(document["reached"]), int(document["tries"])
    )
