"""`isthmus node check`: every look at this node with its result, and the remedy of each problem."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from isthmus.cli.errors import CommandError
from isthmus.cli.node.checks import CHECKS, Check, problems_of


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True)
class Finding:
    """What one look found.

    Attributes:
        check: its name.
        level: how bad it is.
        problem: "" where all is well.
        remedy: what to do about it.
        drains: slurmd's own examination takes the node out of service for it.
    """

    check: str
    level: Level
    problem: str = ""
    remedy: str = ""
    drains: bool = False


def findings(checks: Iterable[Check]) -> list[Finding]:
    """Make all looks, in their order."""
    found = []
    for check in checks:
        level = Level.WARNING if check.warns else Level.FAILURE
        problems = problems_of(check)
        found += [Finding(check.name, level, problem, check.remedy, check.drains) for problem in problems]
        if not problems:
            found.append(Finding(check.name, Level.OK))
    return found


def run(options: argparse.Namespace) -> None:
    """Look, and say what was found; exit with status 1 where something is broken.

    Raises:
        CommandError: root alone sees all of it.
    """
    if os.geteuid():
        raise CommandError("only root can look at all of a node; use sudo")
    found = findings(CHECKS)
    if options.json:
        print(json.dumps({"schema": 1, "findings": [asdict(each) for each in found]}))
    else:
        print("\n".join(_line(each) for each in found))
    status = int(any(each.level is Level.FAILURE for each in found))
    # A look at a file server that is away would hold the interpreter's own end up.
    sys.stdout.flush()
    os._exit(status)


def _line(finding: Finding) -> str:
    said = f"{finding.problem}; {finding.remedy}" if finding.problem else ""
    return f"{finding.level:8} {finding.check:13} {said}".rstrip()
