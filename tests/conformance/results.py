"""The results as a document that grows: a run replaces what it ran and keeps the rest of the same Kubernetes.

Runs write to results/, which is this machine's; what is published in docs/results has its rows from many runs.

{schema: 1, date, machine, cases: [{name, file, outcome, seconds, reason, date}]}, and what was tested with its version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isthmus.support import durable
from tests.bench.results import RESULTS, SCHEMA, save
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict

PUBLISHED = RESULTS.parent / "docs/results"
# What was tested -> the document's name.
NAMES = {"kubernetes": "conformance", "mpi_operator": "conformance-mpi"}


@dataclass(frozen=True)
class Row:
    """A case and what became of it.

    Attributes:
        reason: why it did not pass.
        date: of the run, YYYY-MM-DD.
    """

    name: str
    file: str
    outcome: Outcome
    seconds: float
    reason: str
    date: str


def row(case: Case, found: Verdict, date: str) -> Row:
    """Put case and verdict together."""
    return Row(case.name, case.file, found.outcome, found.seconds, found.reason, date)


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """Return all rows by name; of two of one case the newer."""
    rows = {one.name: one for one in (*before, *now)}
    return [rows[name] for name in sorted(rows)]


def read(document: dict[str, Any], version: str, subject: str = "kubernetes") -> list[Row]:
    """Return the rows of a document; none where it is of another schema or another version."""
    if (document.get("schema"), document.get(subject)) != (SCHEMA, version):
        return []
    return [Row(**one | {"outcome": Outcome(one["outcome"])}) for one in document["cases"]]


def kept(version: str, folder: Path = RESULTS, subject: str = "kubernetes") -> list[Row]:
    """Return the rows of earlier runs."""
    path = folder / f"{NAMES[subject]}.json"
    return read(json.loads(path.read_text(encoding="utf-8")), version, subject) if path.exists() else []


def keep(rows: Sequence[Row], version: str, subject: str = "kubernetes") -> Path:
    """Write the results; return their path."""
    figures: dict[str, Any] = {subject: version, "cases": [asdict(one) for one in rows]}
    return save(NAMES[subject], **figures)


def publish(
    version: str, subject: str = "kubernetes", folder: Path = RESULTS, published: Path = PUBLISHED
) -> list[Row]:
    """Add this machine's rows to the published ones of the same version; return all, or none where none are here."""
    new = kept(version, folder, subject)
    if not new:
        return []
    rows = merged(kept(version, published, subject), new)
    document = json.loads((folder / f"{NAMES[subject]}.json").read_text(encoding="utf-8"))
    document["cases"] = [asdict(one) for one in rows]
    durable.write(published / f"{NAMES[subject]}.json", json.dumps(document, indent=1) + "\n", 0o644)
    return rows


def keep_log(case: Case, found: Verdict, text: str, name: str, folder: Path = RESULTS) -> None:
    """Keep what a case that failed has said, below `logs` in a folder of that name."""
    if found.outcome is not Outcome.FAILED:
        return
    place = folder / "logs" / name
    place.mkdir(parents=True, exist_ok=True)
    file = re.sub("[^A-Za-z0-9]+", "-", case.name).strip("-")[:120]
    (place / f"{file}.log").write_text(text)
