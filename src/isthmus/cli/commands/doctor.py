"""`isthmus doctor`: problems of a user's Kubernetes, or of the site, with remedies."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console

from isthmus.cli import user_cluster
from isthmus.cli.errors import CommandError
from isthmus.controlplane.doctor.examine import examine
from isthmus.controlplane.doctor.findings import Finding, Level

_MARKS = {Level.OK: "[green]ok[/]", Level.WARNING: "[yellow]warning[/]", Level.FAILURE: "[red]failure[/]"}


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "doctor",
        help="find the problems of your Kubernetes, or of the site",
        description="Examine home, Slurm, network and cluster; each finding comes with a remedy.",
        epilog="exit status: 0 nothing is broken (warnings may be), 1 something is, 2 wrong usage",
    )
    command.add_argument("--site", action="store_true", help="examine the cluster itself (root, on the controller)")
    user_cluster.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the checks; exit with status 1 where something is broken.

    Raises:
        CommandError: only root can examine the site.
    """
    console = Console(soft_wrap=True, highlight=False)
    found = []
    for finding in _examine_site() if options.site else examine(user_cluster.here()):
        found.append(finding)
        if not options.json:
            _show(console, finding)
    if options.json:
        print(json.dumps({"schema": 1, "findings": [asdict(each) for each in found]}))
    if any(each.level is Level.FAILURE for each in found):
        sys.exit(1)


def _examine_site() -> Iterator[Finding]:
    if os.geteuid():
        raise CommandError("only root can examine the site; use sudo on the controller")
    # Imported here: a user's checks should not wait for its libraries.
    from isthmus.monitoring import site

    yield from site.examine()


def _show(console: Console, finding: Finding) -> None:
    console.print(_MARKS[finding.level], end=" ")
    console.print(finding.what, markup=False)
    if finding.remedy:
        console.print(f"        {finding.remedy}", markup=False)
