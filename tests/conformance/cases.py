"""The conformance cases: as the suite itself lists them, and those that cannot apply to pods that are jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

TABLE = Path(__file__).with_name("inapplicable.yml")


@dataclass(frozen=True)
class Case:
    """A conformance case.

    Attributes:
        name: its whole name, as the suite knows it.
        file: where its source is, below test/e2e.
    """

    name: str
    file: str

    @property
    def pattern(self) -> str:
        """An expression for this case alone, in the words that Go and Python share."""
        return re.sub(r"([^A-Za-z0-9 _])", r"\\\1", self.name) + "$"

    @property
    def alone(self) -> bool:
        """Whether nothing else may run in the cluster meanwhile."""
        return "[Serial]" in self.name


@dataclass(frozen=True)
class Inapplicable:
    """Cases that cannot apply: an expression for their names, and why."""

    cases: str
    reason: str


def listed(text: str) -> list[Case]:
    """Read what `e2e.test --list-conformance-tests` prints.

    Raises:
        ValueError: it is no list of cases.
    """
    rows = yaml.safe_load(text)
    if not isinstance(rows, list) or not rows:
        raise ValueError("the suite lists no conformance cases")
    return [Case(" ".join(row["codename"].split()), row["file"].removeprefix("test/e2e/")) for row in rows]


def chosen(cases: Iterable[Case], focus: str) -> list[Case]:
    """Return the cases whose name has the expression in it.

    Raises:
        ValueError: none has.
    """
    found = [case for case in cases if re.search(focus, case.name)]
    if not found:
        raise ValueError(f"no conformance case is {focus!r}; FOCUS is a regular expression such as 'sig-node'")
    return found


def inapplicable(path: Path = TABLE) -> list[Inapplicable]:
    """Read the table of cases that cannot apply."""
    return [Inapplicable(row["cases"], row["reason"]) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


def reason_against(case: Case, table: Sequence[Inapplicable]) -> str:
    """Why the case cannot apply; "" when it can."""
    return next((row.reason for row in table if re.search(row.cases, case.name)), "")


def idle(cases: Sequence[Case], table: Sequence[Inapplicable]) -> list[str]:
    """Return the expressions of the table that no case has: a new version has renamed them."""
    return [row.cases for row in table if not any(re.search(row.cases, case.name) for case in cases)]
