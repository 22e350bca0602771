"""`isthmus network`: pod networks, from this host's daemon; users see their own, root sees all."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError
from isthmus.model.network import Transport
from isthmus.network.api.client import SOCKET, ask
from isthmus.network.api.messages import (
    Expose,
    LeaseDrop,
    LeaseTake,
    List,
    Metrics,
    NodeForget,
    Rekey,
    Request,
    Reserve,
    Status,
    Trace,
    TraceProtocol,
    Unreserve,
    Withdraw,
)
from isthmus.network.api.protocol import RequestError

EPILOG = """examples:
  srun --pod-network hostname          run a job in your private network
  isthmus network list                 your jobs there, with addresses
  isthmus network list --json | jq '.jobs[].addresses'
  isthmus network join                 make this login node a member, to reach your pods from here
  isthmus network reserve web          keep an address for a service; its name is web.<you>.<cluster>
  isthmus network expose web 443       let the outside reach it, where the site's rules let it; `withdraw` ends that
  isthmus network trace 12 13:pod1     why does job 12's first pod (not) reach the second pod of job 13
  isthmus network trace 12 192.0.2.7 --port 25
  isthmus network trace 192.0.2.7 web --port 443    may that host outside reach the port that you opened"""
FROM = "a job (12, 12:NODE, 12:pod1), one of your names, an address, a host (you there; root: USER@HOST), or outside"


def register(subparsers: Any) -> None:
    """Add the command and its own sub-commands."""
    command = subparsers.add_parser(
        "network",
        help="see and use your private network",
        description="Pods of one user reach one another on every node; other users cannot reach them.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _verb(verbs, "status", "state of this host's daemon", Status)
    _verb(verbs, "list", "jobs, addresses, reservations and ports that are open to the outside", List)
    _verb(verbs, "join", "make this host a member of your network until an hour after you leave", LeaseTake)
    _verb(verbs, "leave", "end the membership now", LeaseDrop)
    for name, words, kind in (("reserve", "keep an address", Reserve), ("unreserve", "release an address", Unreserve)):
        _verb(verbs, name, words, kind).add_argument("name", help="letters, digits, hyphens; a DNS label")
    opening = "open a port of a reservation to the outside, where the site's rules let anybody in"
    for exposed in (_verb(verbs, "expose", opening, Expose), _verb(verbs, "withdraw", "close it", Withdraw)):
        exposed.add_argument("name", help="the reservation, whose address a job of yours has")
        exposed.add_argument("port", type=int, help="in the pod; outside it is the same")
        exposed.add_argument("--proto", dest="protocol", type=Transport, choices=[*Transport], default=Transport.TCP)
    forget = _verb(verbs, "forget", "remove a node that left the cluster from the pod networks (root only)", NodeForget)
    forget.add_argument("node", help="its name, as Slurm had it")
    _verb(verbs, "rekey", "give this node another key for the encryption between nodes (root only)", Rekey)
    _verb(verbs, "metrics", "metrics of this host's daemon, for Prometheus (root only)", Metrics)
    traced = _verb(verbs, "trace", "why does A reach B, or not: each rule on the way", Trace)
    traced.add_argument("source", metavar="FROM", help=FROM)
    traced.add_argument("target", metavar="TO", help="the same, or any other address")
    traced.add_argument("--port", type=int, default=0, help="of TO; without it a rule about ports may leave it open")
    traced.add_argument(
        "--proto", dest="protocol", type=TraceProtocol, choices=[*TraceProtocol], default=TraceProtocol.TCP
    )


def _verb(verbs: Any, name: str, help_text: str, kind: type) -> Any:
    verb = verbs.add_parser(name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    if kind in (LeaseTake, LeaseDrop, Reserve, Unreserve, Expose, Withdraw):
        verb.add_argument("--uid", type=int, help="for whom (root only)")
    verb.set_defaults(run=run, kind=kind)
    return verb


def run(options: argparse.Namespace) -> None:
    """Send a request to the daemon and print the reply.

    Raises:
        CommandError: the daemon refused it, or cannot be reached.
    """
    try:
        reply = ask(_request(options))
    except RequestError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{SOCKET}: {error}; an administrator checks isthmus-networkd on this host") from error
    if options.json:
        print(json.dumps({"schema": 1, **reply}))
    elif options.kind is Metrics:
        print(reply["text"], end="")
    else:
        show(reply)


def show(reply: Mapping[str, Any]) -> None:
    """Print a reply as text: lists of objects as tables, others as words."""
    console = Console()
    table = Table(show_header=False, box=None)
    for name, value in reply.items():
        if not isinstance(value, list):
            table.add_row(name, _words(value))
    if table.row_count:
        console.print(table)
    for name, value in reply.items():
        if isinstance(value, list):
            console.print(_rows(name, value) if value else f"no {name}")


def _request(options: argparse.Namespace) -> Request:
    given = {each.name: getattr(options, each.name) for each in fields(options.kind)}
    request: Request = options.kind(**given)
    return request


def _rows(title: str, values: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title, box=None, title_justify="left")
    for column in values[0]:
        table.add_column(column)
    for value in values:
        table.add_row(*map(_words, value.values()))
    return table


def _words(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {each}" for name, each in value.items()) or "none"
    return str(value)
