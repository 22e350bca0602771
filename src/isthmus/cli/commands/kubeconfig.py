"""`isthmus kubeconfig`: kubectl's file for the user's Kubernetes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from isthmus.cli import user_cluster
from isthmus.cli.errors import CommandError
from isthmus.controlplane.pki import kubeconfig

EPILOG = """examples:
  export KUBECONFIG=$(isthmus kubeconfig --path)
  isthmus kubeconfig --merge           make it the current context of ~/.kube/config
  isthmus kubeconfig | ssh elsewhere 'umask 077; cat > isthmus.kubeconfig'

It contains a key with all rights in the cluster. `isthmus up` makes ~/.kube/config of it if you have none; one that is
there it leaves alone, but for the entries named isthmus, which follow the keys."""


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "kubeconfig",
        help="print the kubeconfig of your Kubernetes",
        description="Print the kubeconfig of your Kubernetes, or its path.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    how = command.add_mutually_exclusive_group()
    how.add_argument("--path", action="store_true", help="print only the path")
    usual = Path("~/.kube/config")
    how.add_argument("--merge", nargs="?", type=Path, const=usual, metavar="FILE", help=f"merge it into FILE ({usual})")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print or merge it.

    Raises:
        CommandError: there is none yet, or FILE cannot be merged into.
    """
    own = user_cluster.here().home.kubeconfig
    if not own.exists():
        raise CommandError(f"{own} is not there yet; `isthmus up` writes it")
    if options.merge:
        target = options.merge.expanduser()
        with user_cluster.explained():
            kubeconfig.merge(target, own)
        print(f"context {kubeconfig.NAME} is current in {target}")
    else:
        print(own if options.path else own.read_text(encoding="utf-8").rstrip())
