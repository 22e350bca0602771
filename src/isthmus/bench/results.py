"""Results as a document that is whole at every moment: written after each run, and read by whoever goes on.

A document belongs to one size on one cluster; others begin one of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from isthmus.support import durable

SCHEMA = 1


class ResultsError(Exception):
    """A file that holds no such results, or another's; the words have the remedy."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        round: 0 for one that warmed up.
        table: the cell.
        row: the same.
        column: the same.
        when: it was submitted, in UTC.
        end_s: from submission to completion, as its user sees it.
        start_s: from submission to the first rank.
        program_s: from the first rank's beginning to the last one's end.
        figures: what the program said.
        steps_s: how long each step took, where a job has several.
        load: of the machine that submits, just before.
        error: why it does not count; empty for one that does.
    """

    round: int
    table: str
    row: str
    column: str
    when: str
    end_s: float = 0
    start_s: float = 0
    program_s: float = 0
    figures: Mapping[str, Any] = field(default_factory=dict)
    steps_s: tuple[float, ...] = ()
    load: float = 0
    error: str = ""

    @property
    def key(self) -> str:
        """Name it as a plan does."""
        return f"{self.round}/{self.table}/{self.row}/{self.column}"


@dataclass(frozen=True, slots=True)
class Document:
    """All results of one size on one cluster.

    Attributes:
        size: its name.
        about: the cluster, machine, versions, settings.
        left_out: cell -> why it was not run.
        results: in the order in which they were had.
    """

    size: str
    about: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict)
    results: tuple[Result, ...] = ()

    @property
    def done(self) -> frozenset[str]:
        """Runs that count, by key; one that failed is run again."""
        return frozenset(each.key for each in self.results if not each.error)

    def with_result(self, result: Result) -> Document:
        """Return the document with one more; an earlier failure of the same run goes."""
        kept = tuple(each for each in self.results if each.key != result.key)
        return Document(self.size, self.about, self.left_out, (*kept, result))


def write(document: Document, path: Path) -> None:
    """Keep a document in one step."""
    durable.write(path, json.dumps({"schema": SCHEMA, **asdict(document)}, indent=1) + "\n")


def read(path: Path) -> Document:
    """Read a document.

    Raises:
        ResultsError: it is none.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.pop("schema") != SCHEMA:
            raise ValueError(f"only schema {SCHEMA} is known here")
        results = [Result(**{**each, "steps_s": tuple(each["steps_s"])}) for each in told.pop("results")]
        return Document(**told, results=tuple(results))
    except FileNotFoundError as error:
        raise ResultsError(f"{path} is missing; run `isthmus bench run` first") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} holds no results: {error}; move it away, or name another file") from error


def resume(path: Path, size: str, about: Mapping[str, Any], left_out: Mapping[str, str]) -> Document:
    """Return what is there already, or an empty document.

    Raises:
        ResultsError: what is there is of another size or cluster.
    """
    if not path.exists():
        return Document(size, about, left_out)
    found = read(path)
    for what, there, now in (("size", found.size, size), ("cluster", found.about.get("cluster"), about["cluster"])):
        if there != now:
            raise ResultsError(f"{path} has results of {what} {there}, not {now}; name another file with --output")
    return Document(size, about, left_out, found.results)
