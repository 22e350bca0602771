"""`isthmus doctor`: what is wrong, and the remedy."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from rich.console import Console

from isthmus.cli import user_cluster
from isthmus.controlplane.doctor.examine import examine
from isthmus.controlplane.doctor.findings import Finding, Level

_MARKS = {Level.OK: "[green]ok[/]", Level.WARNING: "[yellow]warning[/]", Level.FAILURE: "[red]failure[/]"}


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "doctor",
        help="find out what keeps your Kubernetes from working",
        description="Examine home, Slurm, network and cluster; each finding comes with a remedy.",
        epilog="exit status: 0 nothing is broken (warnings may be), 1 something is, 2 wrong usage",
    )
    user_cluster.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Examine; exit with status 1 where something is broken."""
    here = user_cluster.here()
    console = Console(soft_wrap=True, highlight=False)
    found = []
    for finding in examine(here):
        found.append(finding)
        if not options.json:
            _show(console, finding)
    if options.json:
        print(json.dumps({"schema": 1, "findings": [asdict(each) for each in found]}))
    if any(each.level is Level.FAILURE for each in found):
        sys.exit(1)


def _show(console: Console, finding: Finding) -> None:
    console.print(_MARKS[finding.level], end=" ")
    console.print(finding.what, markup=False)
    if finding.remedy:
        console.print(f"        {finding.remedy}", markup=False)
