"""What became of the ways of each attack, in a run of one process or of several: a line for each row, and a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_PROPERTY = "attack"


@dataclass
class Row:
    """One kind of attack and what became of its ways."""

    finding: str
    what: str
    ended: Counter[str] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        """How many ways were tried; one that does not apply to this site was not."""
        return self.ended["passed"] + self.ended["failed"]

    def line(self) -> str:
        """Return the row as `make attack` prints it."""
        left = f"  OPEN {self.ended['failed']}" if self.ended["failed"] else ""
        skipped = f"  not applicable {self.ended['skipped']}" if self.ended["skipped"] else ""
        return (
            f"{self.finding:<6} {self.what:<86} tried {self.tried:>4}  blocked {self.ended['passed']:>4}{left}{skipped}"
        )


def belong(item: pytest.Item, finding: str, what: str) -> None:
    """Have a test belong to a row; its reports bring that along, also from another process."""
    item.user_properties.append((_PROPERTY, [finding, what]))


class Rows:
    """The rows of a run, as a plugin of pytest.

    Args:
        file: where they are kept.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what became of a way."""
        row = dict(report.user_properties).get(_PROPERTY)
        # A way whose preparation fails was not blocked.
        if isinstance(row, list) and (report.when == "call" or not report.passed):
            self.rows.setdefault(report.nodeid.partition("[")[0], Row(*row)).ended[report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one line a row, and keep the rows."""
        if not self.rows:
            return
        rows = sorted(self.rows.values(), key=lambda row: (len(row.finding), row.finding))
        terminalreporter.section("attacks")
        for row in rows:
            terminalreporter.write_line(row.line())
        tried, still_open = sum(row.tried for row in rows), sum(row.ended["failed"] for row in rows)
        terminalreporter.write_line(f"{tried} ways tried, {tried - still_open} blocked, {still_open} open")
        self.file.parent.mkdir(exist_ok=True)
        shown = [{"finding": row.finding, "what": row.what, "tried": row.tried, **row.ended} for row in rows]
        self.file.write_text(json.dumps({"schema": 1, "rows": shown}, indent=1) + "\n")
