"""Executes a plan and stores each result at once, so that an interrupted session can be resumed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from isthmus.bench import output
from isthmus.bench.launches import Column, Launch
from isthmus.bench.output import OutputError
from isthmus.bench.plan import Plan, Run
from isthmus.bench.results import Document, Result
from isthmus.clients.kube.errors import KubeError

# Estimates of a run's overhead until there are figures of this cluster.
_GUESS_S = {Column.MPIJOB: 8.0, Column.POD: 4.0, Column.PLAIN: 10.0}
_USUAL_S = 3.0
# A cell that failed this often in one session is skipped until the next.
_TRIES = 2


class Platform(Protocol):
    """Slurm, the user's Kubernetes, or a plain one."""

    def run(self, launch: Launch, name: str) -> tuple[str, float, float]:
        """Run a launch; return what its ranks wrote, when it was submitted, and when it had ended."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a plan.

    Attributes:
        platform: column -> the platform that starts its ranks; what it raises ends the session.
        keep: stores the document after each run.
        progress: called with a line about each run.
        clock: seconds, for estimates and the limit.
    """

    platform: Callable[[Column], Platform]
    keep: Callable[[Document], None]
    progress: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic

    def go_on(self, plan: Plan, document: Document, limit_s: float) -> Document:
        """Run what is left of a plan.

        Args:
            plan: all runs.
            document: results so far.
            limit_s: no run starts after this many seconds.
        """
        ends_s, failures = self.clock() + limit_s, dict[str, int]()
        left = [run for run in plan.runs if run.key not in document.done]
        for place, run in enumerate(left):
            if self.clock() > ends_s:
                break
            if failures.get(run.launch.key, 0) >= _TRIES:
                continue
            result = self.once(run)
            document = document.with_result(result)
            self.keep(document)
            failures[run.launch.key] = failures.get(run.launch.key, 0) + bool(result.error)
            self.progress(_line(result, place + 1, len(left), remaining_s(left[place + 1 :], document.results)))
        return document

    def once(self, run: Run) -> Result:
        """Run one launch; a failure is a result with an error."""
        launch = run.launch
        cell = (run.round, str(launch.table), launch.row, str(launch.column))
        # It may have to be started first.
        platform = self.platform(launch.column)
        when, load = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", os.getloadavg()[0]
        try:
            text, began, ended = platform.run(launch, name(run))
            read = output.read(text, launch)
        except (OutputError, KubeError) as error:
            return Result(*cell, when=when, load=load, error=str(error))
        return Result(
            *cell,
            when=when,
            end_s=round(ended - began, 4),
            start_s=round(read.first_rank - began, 4),
            program_s=round(read.program_s, 4),
            figures=read.figures,
            steps_s=read.steps_s,
            load=load,
        )


def name(run: Run) -> str:
    """Return a name that is valid in Kubernetes."""
    launch = run.launch
    words = f"b{run.round}-{launch.table}-{launch.row}-{launch.column}".lower()
    return "".join(letter if letter.isalnum() else "-" for letter in words)


def remaining_s(runs: Sequence[Run], results: Sequence[Result]) -> float:
    """Estimate the time of runs: the median of the same cell, else of its column."""
    cells: dict[str, list[float]] = {}
    for each in results:
        if not each.error:
            for known in (f"{each.table}/{each.row}/{each.column}", each.column):
                cells.setdefault(known, []).append(each.end_s)
    guess = {column: _GUESS_S.get(column, _USUAL_S) for column in Column}

    def expected(run: Run) -> float:
        known = cells.get(run.launch.key) or cells.get(run.launch.column) or [guess[run.launch.column]]
        return statistics.median(known)

    return sum(expected(run) for run in runs)


def _line(result: Result, place: int, count: int, left_s: float) -> str:
    outcome = (
        f"FAILED: {result.error}" if result.error else f"{result.end_s:.1f} s, the program {result.program_s:.1f} s"
    )
    kind = f"round {result.round}" if result.round else "warm-up"
    where = f"{result.table} {result.row} {result.column}"
    return f"[{place}/{count}] {kind}: {where}: {outcome}; about {left_s / 60:.0f} min left"
