"""The report on the data: on which disk, how old the last snapshot is, what was or may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from isthmus.controlplane.commands.context import read_json
from isthmus.controlplane.layout import Layout


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Data, on a node's disk or the home.

    Attributes:
        node: of the job.
        snapshot: name of the last one; empty for none yet.
        saved: when it was taken, ISO 8601.
        words: where the data are, and what that means; empty for the home.
        warnings: what is not.
    """

    node: str
    snapshot: str
    saved: str
    words: str
    warnings: list[str]


def read(layout: Layout, job: str) -> OnDisk | None:
    """Return what a job reported; None where it reported nothing."""
    document = read_json(layout.data)
    if document is None or document.get("job") != job:
        return None
    saved = str(document["saved"])
    age = f"the last one is of {_local(saved)}" if saved else "none was taken yet"
    words = (
        f"data on the disk of {document['node']}; a snapshot goes to your home within"
        f" {document['every_s']} s of a change, {age}; when the node dies, what is newer is lost"
    )
    words = words if document["every_s"] else ""
    problem = [f"no newer snapshot: {document['problem']}"] if document["problem"] else []
    return OnDisk(
        str(document["node"]), str(document["snapshot"]), saved, words, [*map(str, document["warnings"]), *problem]
    )


def _local(saved: str) -> str:
    return f"{datetime.fromisoformat(saved).astimezone():%F %T}"
