"""`isthmus node check`: all checks of this node, with the remedy of each problem."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from isthmus.cli.errors import CommandError
from isthmus.monitoring.checks import CHECKS, Check, problems_of


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: its name.
        level: its severity.
        problem: "" without one.
        remedy: of the problem.
        drains: slurmd's health check drains the node for it.
    """

    check: str
    level: Level
    problem: str = ""
    remedy: str = ""
    drains: bool = False


def findings(checks: Iterable[Check]) -> list[Finding]:
    """Run all checks, in their order."""
    found = []
    for check in checks:
        level = Level.WARNING if check.warns else Level.FAILURE
        problems = problems_of(check)
        found += [Finding(check.name, level, problem, check.remedy, check.drains) for problem in problems]
        if not problems:
            found.append(Finding(check.name, Level.OK))
    return found


def run(options: argparse.Namespace) -> None:
    """Run the checks and print the findings; exit with status 1 where something is broken.

    Raises:
        CommandError: the caller is not root.
    """
    if os.geteuid():
        raise CommandError("only root can check a node; use sudo")
    found = findings(CHECKS)
    if options.json:
        print(json.dumps({"schema": 1, "findings": [asdict(each) for each in found]}))
    else:
        print("\n".join(_line(each) for each in found))
    status = int(any(each.level is Level.FAILURE for each in found))
    # A check that hangs on a file server would block the interpreter's exit.
    sys.stdout.flush()
    os._exit(status)


def _line(finding: Finding) -> str:
    said = f"{finding.problem}; {finding.remedy}" if finding.problem else ""
    return f"{finding.level:8} {finding.check:13} {said}".rstrip()
