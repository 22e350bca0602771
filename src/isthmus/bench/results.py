"""The document of results: written atomically after each run, so that an interrupted session can be resumed.

A document belongs to one size on one cluster.
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
    """A file without results, or with those of another cluster; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        round: 0 for a warm-up.
        table: the cell.
        row: of it.
        column: of it.
        when: it was submitted, in UTC.
        end_s: from submission to completion, as its user sees it.
        start_s: from submission to the first rank.
        program_s: from the first rank's beginning to the last one's end.
        figures: the program's own result.
        steps_s: how long each step took, where a job has several.
        load: of the machine that submits, just before.
        error: why it is not valid; empty for a valid one.
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
        """Return the key that plans use."""
        return f"{self.round}/{self.table}/{self.row}/{self.column}"


@dataclass(frozen=True, slots=True)
class Document:
    """All results of one size on one cluster.

    Attributes:
        size: its name.
        about: the cluster, machine, versions, settings.
        left_out: cell -> why it is not run.
        results: in the order of the runs.
    """

    size: str
    about: Mapping[str, Any]
    left_out: Mapping[str, str] = field(default_factory=dict)
    results: tuple[Result, ...] = ()

    @property
    def done(self) -> frozenset[str]:
        """Keys of valid runs; failed ones are run again."""
        return frozenset(each.key for each in self.results if not each.error)

    def with_result(self, result: Result) -> Document:
        """Return the document with a result; it replaces an earlier failure of the same run."""
        kept = tuple(each for each in self.results if each.key != result.key)
        return Document(self.size, self.about, self.left_out, (*kept, result))


def write(document: Document, path: Path) -> None:
    """Write a document atomically."""
    durable.write(path, json.dumps({"schema": SCHEMA, **asdict(document)}, indent=1) + "\n")


def read(path: Path) -> Document:
    """Read a document.

    Raises:
        ResultsError: the file is no such document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("schema") != SCHEMA:
            raise ValueError(f"only schema {SCHEMA} is known here")
        results = [Result(**{**each, "steps_s": tuple(each["steps_s"])}) for each in document.pop("results")]
        return Document(**document, results=tuple(results))
    except FileNotFoundError as error:
        raise ResultsError(f"{path} is missing; run `isthmus bench run` first") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} holds no results: {error}; move it away, or name another file") from error


def resume(path: Path, size: str, about: Mapping[str, Any], left_out: Mapping[str, str]) -> Document:
    """Return the present document, or an empty one.

    Raises:
        ResultsError: the present one is of another size or cluster, or was begun without a plain Kubernetes.
    """
    if not path.exists():
        return Document(size, about, left_out)
    found = read(path)
    for what, there, now in (("size", found.size, size), ("cluster", found.about.get("cluster"), about["cluster"])):
        if there != now:
            raise ResultsError(f"{path} has results of {what} {there}, not {now}; name another file with --output")
    # Its runs would lie far from those that they are compared with.
    if "plain" in about and "plain" not in found.about and any(each.round for each in found.results):
        raise ResultsError(f"{path} was begun without a plain Kubernetes; name another file with --output")
    kept = {"plain": found.about["plain"]} if "plain" in found.about else {}
    return Document(size, {**kept, **about}, left_out, found.results)
