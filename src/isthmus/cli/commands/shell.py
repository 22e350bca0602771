"""`isthmus shell`: a shell, or a command, in a job of yours, on a node of your choice.

It is a Slurm step with --overlap: so it is in the job's cgroup and in its pod network, and Slurm checks the job's
owner. `ssh` to a node is adopted by the newest job there; this selects any.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.cli.errors import CommandError

# 12, 12_3 of an array, 12+1 of a heterogeneous job; a node follows after a dot.
_JOB = re.compile(r"(?P<job>[1-9]\d*(?:[_+]\d+)?)(?:\.(?P<node>[A-Za-z0-9][A-Za-z0-9._-]*))?")
# srun reads these variables of a surrounding job or step as options.
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")
EPILOG = """examples:
  isthmus shell 12                a shell in job 12, on its first node
  isthmus shell 12.c2             the same on node c2
  isthmus shell 12.c2 -- ss -ltn  a command there"""


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "shell",
        help="open a shell in a job of yours",
        description="Open a shell, or run a command, in a job of yours: within its memory and network, until it ends.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("job", metavar="JOB[.NODE]", help="its id, as in squeue; by default on its first node")
    command.add_argument("command", nargs="*", metavar="COMMAND", help="by default your login shell")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Execute srun."""
    words = step(options.job, options.command, os.environ.get("SHELL", "/bin/sh"), is_terminal=_is_terminal())
    program = shutil.which("srun")
    if program is None:
        raise CommandError("srun is not installed here; log in to a login host")
    # The user's own command, as after a login.
    os.umask(options.umask)
    os.execve(program, ["srun", *words], environment(os.environ))  # noqa: S606 -- no shell is between


def step(job: str, command: Sequence[str], shell: str, *, is_terminal: bool) -> list[str]:
    """Return srun's command.

    Raises:
        CommandError: the argument is no job.
    """
    found = _JOB.fullmatch(job)
    if found is None:
        raise CommandError(f"{job!r} is no job; write 12, or 12.c2 for node c2, as in squeue and scontrol", 2)
    words = [f"--jobid={found['job']}", "--overlap", "--nodes=1", "--ntasks=1", "--quiet"]
    if found["node"]:
        words.append(f"--nodelist={found['node']}")
    if is_terminal:
        words.append("--pty")
    return [*words, "--", *(command or [shell, "-l"])]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables of a surrounding job."""
    return {name: value for name, value in given.items() if name in _KEPT or not name.startswith(("SLURM_", "SBATCH_"))}


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
