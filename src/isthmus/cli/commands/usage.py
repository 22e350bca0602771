"""`isthmus usage`: what pods, namespaces and accounts used, by Slurm's accounting."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError
from isthmus.clients.slurm import accounting
from isthmus.clients.slurm.commands import SlurmError
from isthmus.controlplane.layout import JOB_NAME
from isthmus.model.slurm.usage import By, Usage, summed

SCHEMA = 1
EPILOG = """examples:
  isthmus usage                              your namespaces in the last seven days
  isthmus usage --by pod --since 2026-01-01  your pods since then
  isthmus usage --by account --all-users     who pays for what, as an operator of Slurm

A pod is a Slurm job: what it had is what the job had, for as long as it ran. Jobs count as a whole if they ran in the
period at all. Processor time is known of steps that have ended."""


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "usage",
        help="show what your pods, namespaces and accounts used",
        description="Show what pods, namespaces, accounts or users had of processors, memory and GPUs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--by", choices=[*By], default=By.NAMESPACE, type=By, help="one row each (default: namespace)")
    command.add_argument("--since", default="now-7days", metavar="TIME", help="as sacct takes it (default: now-7days)")
    command.add_argument("--until", default="", metavar="TIME", help="likewise (default: now)")
    whose = command.add_mutually_exclusive_group()
    whose.add_argument("--user", action="append", default=[], metavar="NAME", help="of this user; may be repeated")
    whose.add_argument("--all-users", action="store_true", help="of everybody whose jobs Slurm shows you")
    command.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Ask once, sum up, print.

    Raises:
        CommandError: Slurm's accounting does not answer.
    """
    try:
        jobs = accounting.jobs(options.since, options.until, options.user, everybody=options.all_users)
    except SlurmError as error:
        raise CommandError(str(error)) from error
    rows = summed(jobs, options.by, JOB_NAME)
    if options.json:
        about = {"schema": SCHEMA, "by": options.by, "since": options.since, "until": options.until}
        print(json.dumps({**about, "rows": [asdict(row) for row in rows]}))
    else:
        Console().print(_table(rows, options.by))


def _table(rows: list[Usage], by: By) -> Table:
    table = Table(box=None)
    table.add_column(by.upper(), overflow="fold")
    for name in ("JOBS", "CPU HOURS", "USED", "MEMORY GIB HOURS", "GPU HOURS"):
        table.add_column(name, justify="right")
    for row in rows:
        used = f"{100 * row.used_cpu_hours / row.cpu_hours:.0f} %" if row.cpu_hours else ""
        hours = (f"{each:.2f}" for each in (row.memory_gib_hours, row.gpu_hours))
        table.add_row(row.key, str(row.jobs), f"{row.cpu_hours:.2f}", used, *hours)
    return table
