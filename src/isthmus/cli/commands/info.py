"""`isthmus info`: the cluster that this host is a member of."""

from __future__ import annotations

import argparse
import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError

CLUSTER_FILE = Path("/etc/isthmus/cluster.json")


@dataclass(frozen=True, slots=True)
class Info:
    """The output of `isthmus info --json`; `schema` changes when a field changes its meaning."""

    schema: int
    name: str
    id: str
    host: str
    isthmus: str


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "info", help="show which cluster this is", description="Show the cluster's name, identity and version."
    )
    command.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    command.set_defaults(run=run)


def read(path: Path = CLUSTER_FILE) -> Info:
    """Read the cluster's identity.

    Raises:
        CommandError: the host is no member of a cluster, or its file cannot be read.
    """
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return Info(1, known["name"], known["id"], platform.node(), version("isthmus"))
    except FileNotFoundError as error:
        raise CommandError(f"{path} is missing; run this on a host of the cluster") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path}: {error!r}; an admin writes it again with playbooks/base.yml") from error


def run(options: argparse.Namespace) -> None:
    """Print what `read` found, as a table or as JSON."""
    fields = asdict(read())
    if options.json:
        print(json.dumps(fields))
        return
    table = Table(show_header=False, box=None)
    for name, value in fields.items():
        table.add_row(name, str(value))
    Console().print(table)
