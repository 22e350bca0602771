"""`isthmus completion`: the completion script for a shell, written by shtab."""

from __future__ import annotations

import argparse
from typing import Any

# Functions of the scripts, which suggest the versions of Kubernetes that this site has.
VERSIONS = "_isthmus_versions"
_LISTED = """newest $(sed -n 's/^ *"kubernetes": "\\([0-9.]*\\)".*/\\1/p' /etc/isthmus/kubernetes.json 2> /dev/null)"""
_FUNCTIONS = {
    "bash": f'{VERSIONS}() {{ compgen -W "{_LISTED}" -- "$1"; }}',
    "zsh": f"{VERSIONS}() {{ compadd -- {_LISTED}; }}",
}


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "completion", help="print the completion script of a shell", description="Print a shell's completion script."
    )
    command.add_argument("shell", choices=("bash", "zsh"), help="e.g. source <(isthmus completion bash)")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the script for `options.shell`."""
    import shtab

    from isthmus.cli.main import parser  # imported here: the parser imports this command

    print(shtab.complete(parser(), shell=options.shell, preamble=_FUNCTIONS[options.shell]))
