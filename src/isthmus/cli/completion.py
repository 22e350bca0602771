"""`isthmus completion`: the completion script for a shell, written by shtab."""

from __future__ import annotations

import argparse
from typing import Any

import shtab


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "completion", help="print the completion script of a shell", description="Print a shell's completion script."
    )
    command.add_argument("shell", choices=("bash", "zsh"), help="e.g. source <(isthmus completion bash)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the script for `options.shell`."""
    from isthmus.cli.main import parser  # imported here: the parser imports this command

    print(shtab.complete(parser(), shell=options.shell))
