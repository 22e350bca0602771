"""`isthmus down`: stop the user's Kubernetes; --purge removes its data too."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from isthmus.cli import user_cluster
from isthmus.cli.errors import CommandError
from isthmus.controlplane.commands.down import Down, down

EPILOG = """examples:
  isthmus down                stop it; `isthmus up` continues with the same objects
  isthmus down --keep-pods    stop the control plane alone; pods go on running
  isthmus down --purge        remove the cluster with all objects and volumes; images are kept

exit status: 0 it is down, 1 it is not (standard error says why), 2 wrong usage"""


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "down",
        help="end your Kubernetes",
        description="Stop your Kubernetes and cancel the jobs of its pods. Does nothing when it is down.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--keep-pods", action="store_true", help="leave pods running; the next start adopts them")
    command.add_argument("--purge", action="store_true", help="remove all objects, volumes and keys")
    command.add_argument("--yes", action="store_true", help="do not ask before --purge")
    user_cluster.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Stop it.

    Raises:
        CommandError: it did not stop, or the user did not confirm.
    """
    here = user_cluster.here()
    if options.purge and not options.yes and not _agreed():
        raise CommandError("nothing was done; give --yes, or answer yes, to remove all objects and volumes")
    with user_cluster.explained(), user_cluster.progress() as progress:
        ended = down(here, progress, keep_pods=options.keep_pods, purge=options.purge)
    print(json.dumps(asdict(ended)) if options.json else _words(ended))


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    print("This removes all objects, volumes and keys of your cluster. Continue? [yes/no] ", end="", file=sys.stderr)
    return sys.stdin.readline().strip() == "yes"


def _words(ended: Down) -> str:
    lines = [f"ended job {' '.join(ended.jobs)}" if ended.jobs else "no control plane ran"]
    lines += [f"ended {len(ended.pods)} pods"] if ended.pods else []
    lines += [f"data are left on the disk of {ended.left}: the next start there removes them"] if ended.left else []
    return "; ".join([*lines, *(f"removed {path}" for path in ended.removed)])
