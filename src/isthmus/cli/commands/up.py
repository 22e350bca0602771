"""`isthmus up`: the user's own Kubernetes, as a Slurm job."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import asdict
from typing import Any

from isthmus.cli import user_cluster
from isthmus.cli.completion import VERSIONS
from isthmus.controlplane.commands.up import Up, up
from isthmus.controlplane.settings import DataLocation
from isthmus.controlplane.versions.plan import NEWEST

TIMEOUT_S = 600
FIRST = """This is your first cluster here. A job of yours, isthmus-control-plane, will run its API server;
each pod will be one more job of yours, named after the pod. Its files lie in ~/.isthmus.
At its time limit the job hands over to a next one.
"""
EPILOG = """examples:
  isthmus up                                     start it, unless it runs
  kubectl get nodes                              it is in ~/.kube/config, if you had none
  kubectl create deployment web --image=nginx    each pod is a job: squeue --me
  isthmus up --partition long --time 7-0         in another partition; also for later starts
  isthmus up --no-figures                        report nothing to the site's monitoring; also for later starts
  isthmus up --kubernetes 1.36                   stay with this release; --kubernetes newest goes on
  isthmus up --data node                         etcd on the node's disk; also for later starts

exit status: 0 the API server answers, 1 it does not (standard error says why), 2 wrong usage"""
FIGURES = """It reports to the site how many pods there are, and how long they took to start, unless you
say `isthmus up --no-figures`.
"""
_OPTIONS = ("partition", "account", "qos", "time", "memory_mib", "audit", "data", "figures", "kubernetes")


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "up",
        help="start your own Kubernetes",
        description="Start your own Kubernetes as a Slurm job and wait until it answers. Does nothing when it runs.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in _OPTIONS[:4]:
        command.add_argument(f"--{name}", default=None, metavar=name.upper(), help=f"{name} of the job, as for sbatch")
    command.add_argument("--memory", dest="memory_mib", type=_mib, metavar="MIB", help="memory of the job")
    command.add_argument(
        "--audit",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="log changes: isthmus logs audit",
    )
    command.add_argument(
        "--figures",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="report to the site's monitoring how many pods there are by phase, and how long they took to start, and "
        "nothing else of them; on by default where the site asks for it",
    )
    command.add_argument(
        "--data",
        choices=[each.value for each in DataLocation],
        help="where etcd writes: your home, or the disk of the job's node with snapshots to your home, for a home that "
        "is slow or has no locks; when the node dies, what is newer than the last snapshot is lost",
    )
    versions = command.add_argument(
        "--kubernetes",
        type=_version,
        metavar="VERSION",
        help="version of Kubernetes, such as 1.36 or 1.36.3, or newest, which is the default; `isthmus status` shows "
        "which are there; data never go back by a minor release",
    )
    versions.complete = dict.fromkeys(("bash", "zsh"), VERSIONS)
    command.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="stop waiting after S seconds")
    user_cluster.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Start it, and print how to use it."""
    here = user_cluster.here()
    if not here.home.cluster.folder.exists() and not options.json:
        print(FIRST + FIGURES * here.settings.figures, file=sys.stderr)
    changes = {name: value for name in _OPTIONS if (value := getattr(options, name)) is not None}
    with user_cluster.explained(), user_cluster.progress() as progress:
        found = up(here, changes, progress, options.timeout)
    print(json.dumps(asdict(found)) if options.json else _words(found))


def _words(found: Up) -> str:
    began = f"started in {found.took_s} s" if found.created else "runs"
    version = f" {found.kubernetes}" if found.kubernetes else ""
    lines = [f"your Kubernetes{version} {began}: job {found.job}, {found.server}"]
    lines += [found.data] if found.data else []
    lines += [f"warning: {warning}" for warning in found.warnings]
    return "\n".join([*lines, *_for_kubectl(found)])


def _for_kubectl(found: Up) -> list[str]:
    """Return what kubectl needs to find it, if it needs anything."""
    export = f"export KUBECONFIG={found.kubeconfig}"
    if given := os.environ.get("KUBECONFIG"):
        return [] if found.kubeconfig in given.split(os.pathsep) else [export]
    why = "~/.kube/config is yours and stays as it is: `isthmus kubeconfig --merge` makes this its current context; or:"
    return [] if found.is_found else [why, export]


def _version(text: str) -> str:
    version = text.removeprefix("v")
    if version != NEWEST and not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){1,2}", version):
        raise argparse.ArgumentTypeError(f"{text!r} is no version; give one such as 1.36 or 1.36.3, or {NEWEST}")
    return version


def _mib(text: str) -> int:
    # The API server alone needs a quarter of a GiB when idle.
    if not text.isdecimal() or int(text) < 768:
        raise argparse.ArgumentTypeError(f"{text!r} is not enough; give whole MiB, at least 768")
    return int(text)
