"""Keeps figures with the date and the machine they were taken on: a figure alone says nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from isthmus.bench.about import machine

RESULTS = Path(__file__).resolve().parents[2] / "results"
SCHEMA = 1


def save(name: str, *, quick: bool = False, **figures: object) -> Path:
    """Write results/NAME.json and return its path; what was quick stays beside what was not."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}{'_quick' * quick}.json"
    head = {"schema": SCHEMA, "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "machine": machine()}
    path.write_text(json.dumps(head | figures, indent=2) + "\n")
    return path


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
