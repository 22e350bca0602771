"""The results as a document that grows: a run replaces what it ran and keeps the rest of the same Kubernetes.

{schema: 1, date, machine, kubernetes, cases: [{name, file, outcome, seconds, reason, date}]}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.results import RESULTS, SCHEMA, save
from tests.conformance.cases import Case
from tests.conformance.junit import Outcome, Verdict

NAME = "conformance"


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


def read(document: dict[str, Any], kubernetes: str) -> list[Row]:
    """Return the rows of a document; none where it is of another schema or another Kubernetes."""
    if (document.get("schema"), document.get("kubernetes")) != (SCHEMA, kubernetes):
        return []
    return [Row(**one | {"outcome": Outcome(one["outcome"])}) for one in document["cases"]]


def kept(kubernetes: str, folder: Path = RESULTS) -> list[Row]:
    """Return the rows of earlier runs."""
    path = folder / f"{NAME}.json"
    return read(json.loads(path.read_text(encoding="utf-8")), kubernetes) if path.exists() else []


def keep(rows: Sequence[Row], kubernetes: str) -> Path:
    """Write results/conformance.json; return its path."""
    return save(NAME, kubernetes=kubernetes, cases=[asdict(one) for one in rows])
