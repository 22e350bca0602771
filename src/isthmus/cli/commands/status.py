"""`isthmus status`: the user's Kubernetes at a glance."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from isthmus.cli import user_cluster
from isthmus.cli.errors import CommandError
from isthmus.controlplane.commands.status import Status, status
from isthmus.controlplane.network import NetworkError


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "status",
        help="show your Kubernetes, its pods and jobs",
        description="Show your control plane, its node, pods and jobs. Exit status 1 when it does not answer.",
    )
    user_cluster.add_json(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Show the status.

    Raises:
        CommandError: the API server does not answer.
    """
    here = user_cluster.here()
    if here.network is not None:
        try:
            here.network.join()
        except NetworkError as error:
            raise CommandError(str(error)) from error
    with user_cluster.explained():
        found = status(here)
    if options.json:
        print(json.dumps(asdict(found)))
    else:
        Console().print(_table(found))
    if not found.up:
        raise CommandError(found.problem or "your Kubernetes is down; start it with `isthmus up`")


def _table(found: Status) -> Table:
    table = Table(show_header=False, box=None)
    for name, words in _rows(found).items():
        if words:
            # Programs' last lines are among them, whatever these look like.
            table.add_row(name, Text(words))
    return table


def _rows(found: Status) -> dict[str, str]:
    job, node = found.job, found.node
    return {
        "control plane": f"job {job.id} {job.state} {job.node}, {job.left} left" if job else "down",
        "successor": f"job {found.successor.id}" if found.successor else "",
        "API server": f"{found.server} {found.version}".strip(),
        "Kubernetes": _versions(found.kubernetes, found.version.removeprefix("v")),
        "programs": ", ".join(_program(name, each) for name, each in found.programs.items()),
        "data": _data(found.data),
        "node": f"{node['name']}, {'ready' if node['ready'] else 'not ready'}" if node else "",
        "pods": ", ".join(f"{count} {phase}" for phase, count in found.pods.items()),
        "jobs of pods": ", ".join(f"{each.id} {each.name} {each.state}" for each in found.pod_jobs),
    }


def _versions(document: dict[str, Any], runs: str) -> str:
    """Return which version runs, which are there, and what the next start does."""
    now = f"{runs} runs" if runs else f"{document['data']} ran last" if document["data"] else ""
    there = f"this site has {', '.join(document['there'])}"
    way = f" by way of {', '.join(document['by'])}" if document["by"] else ""
    coming = f"{document['next']} from the next start{way}" if document["next"] != (runs or document["data"]) else ""
    words = [document["refusal"] and f"the next start is refused: {document['refusal']}"]
    lines = [*words, *(f"warning: {each}" for each in document["warnings"])]
    return "\n".join(filter(None, ["; ".join(filter(None, [now, there, coming if document["next"] else ""])), *lines]))


def _data(document: dict[str, Any]) -> str:
    warnings = [f"warning: {each}" for each in document.get("warnings", ())]
    return "\n".join([*filter(None, [document.get("words")]), *warnings])


def _program(name: str, document: dict[str, Any]) -> str:
    again = f" (restarted {document['restarts']} times, {document['ended']})" if document["restarts"] else ""
    return f"{name} {document['state']}{again}"
