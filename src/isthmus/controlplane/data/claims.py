"""Which data of a cluster are the newest: on the home, on the disk of one node, or in a snapshot.

A claim on the home names the newest by an id that their folder has too. A writer that makes data again, by a restore
or a copy, writes their stamp and then the claim: until then the claim before holds, and a start that broke off there
is made again. Data that are used in place keep their claim, so a death at any moment loses none of them.

Each claim counts one generation further, and a snapshot has its generation in its name. A node that was cut off, and
comes back after others went on, finds another claim and publishes nothing. Should it have looked a moment before, its
snapshot is of an older generation, and later than the one that others went on with: it is never a candidate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from secrets import token_hex

from isthmus.controlplane.data.snapshots import Snapshot
from isthmus.controlplane.errors import ControlPlaneError
from isthmus.controlplane.layout import Layout
from isthmus.controlplane.settings import DataLocation
from isthmus.support import durable

SCHEMA = 1
# The base of data that were copied from the home.
HOME = "home"
_ID_BYTES = 16


class Source(StrEnum):
    """Where the newest data are."""

    HOME = "home"
    NODE = "node"
    SNAPSHOT = "snapshot"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Claim:
    """The newest data.

    Attributes:
        id: theirs alone; the stamp beside data on a node's disk.
        generation: counts claims.
        data: where they lie.
        node: on whose disk; where the claim was made.
        base: the snapshot they were made of, HOME, or empty for a cluster that began with them.
    """

    id: str
    generation: int
    data: DataLocation
    node: str
    base: str = ""


def read(layout: Layout) -> Claim | None:
    """Return the claim; None for a cluster whose data have always been on the home.

    Raises:
        ControlPlaneError: it cannot be read.
    """
    try:
        document = json.loads(layout.claim.read_text(encoding="utf-8"))
        if document.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        return Claim(**{**document, "data": DataLocation(document["data"]), "generation": int(document["generation"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "remove it, and the newest snapshot is used"
        raise ControlPlaneError(f"{layout.claim} cannot be read ({error!r}); {remedy}") from error


def write(layout: Layout, claim: Claim) -> None:
    """Make a claim hold."""
    durable.write(layout.claim, json.dumps({"schema": SCHEMA, **asdict(claim)}) + "\n", 0o600)


def next_claim(before: Claim | None, snapshots: Sequence[Snapshot], data: DataLocation, node: str, base: str) -> Claim:
    """Return the claim of data that are about to be made, above all that was before."""
    generations = [each.generation for each in snapshots] + [before.generation if before else 0]
    return Claim(token_hex(_ID_BYTES), max(generations) + 1, data, node, base)


def candidates(snapshots: Sequence[Snapshot], claim: Claim | None) -> list[Snapshot]:
    """Return the snapshots that may be used, the newest first."""
    ordered = sorted(snapshots, reverse=True)
    if claim is None:
        return ordered
    own = [each for each in ordered if each.generation == claim.generation]
    base = Snapshot.parse(claim.base)
    return own + [each for each in ordered if base is not None and each <= base]


def newest(claim: Claim | None, *, is_here: bool, at_home: bool, usable: Sequence[Snapshot]) -> Source:
    """Decide which data are the newest.

    Args:
        claim: of the home.
        is_here: whether this node's disk has the data of that claim.
        at_home: whether the home has data.
        usable: the candidates among the snapshots.

    Raises:
        ControlPlaneError: there were data, and none are to be had here.
    """
    if claim is None or claim.data is DataLocation.HOME:
        fallback = Source.SNAPSHOT if usable and claim is None else Source.NOTHING
        return Source.HOME if at_home else fallback
    if is_here:
        return Source.NODE
    if usable:
        return Source.SNAPSHOT
    if claim.base == HOME and at_home:
        return Source.HOME
    if claim.base:
        raise ControlPlaneError(f"no snapshot of your cluster is left; its data are on the disk of {claim.node} alone")
    return Source.NOTHING
