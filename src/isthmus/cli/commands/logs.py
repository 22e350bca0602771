"""`isthmus logs`: logs of the programs of the user's control plane."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from isthmus.cli import user_cluster
from isthmus.controlplane.commands import logs as reading

PROGRAMS = ("job", "etcd", "kube-apiserver", "kube-controller-manager", "coredns", "kubelet", "audit")


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "logs",
        help="show the logs of your control plane",
        description="Show the log of one program of your control plane; logs of pods are kubectl's.",
    )
    command.add_argument("program", nargs="?", default="job", choices=PROGRAMS, help="by default the job's own output")
    command.add_argument("-f", "--follow", action="store_true", help="follow new lines until Ctrl-C")
    command.add_argument("-n", "--lines", type=int, default=100, metavar="N", help="number of last lines")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the lines."""
    here = user_cluster.here()
    try:
        with user_cluster.explained():
            for line in reading.lines(here.home.cluster, options.program, options.lines, follow=options.follow):
                print(line, end="", flush=options.follow)
    except KeyboardInterrupt:
        sys.exit(130)
