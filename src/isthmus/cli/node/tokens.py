"""`isthmus node token`: tokens with which nodes join, for administrators on the controller."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError
from isthmus.clients import process
from isthmus.clients.process import ProcessError
from isthmus.node import certificates, tokens
from isthmus.node.errors import JoinError
from isthmus.node.service.records import CA, Records
from isthmus.node.tokens import Record


def create(options: argparse.Namespace) -> None:
    """Create a token and print it.

    Raises:
        CommandError: this host is not the controller, or a name is not in the inventory.
    """
    records = _records()
    try:
        nodes = records.manifest().nodes
        joined, _ = records.joined()
        pin = certificates.pin(CA.read_bytes())
    except (JoinError, certificates.CertificateError) as error:
        raise CommandError(str(error)) from error
    names = _names(options.nodes) if options.nodes else []
    unknown = [name for name in names if name not in nodes]
    if unknown:
        raise CommandError(f"no compute node {', '.join(unknown)}; add it to the inventory and run playbooks/join.yml")
    taken = [name for name in names if name in joined and not options.replace]
    if taken:
        raise CommandError(f"{', '.join(taken)} joined before; add --replace if another machine takes the name")
    free = [name for name in nodes if options.replace or name not in joined]
    uses = options.uses or len(names or free)
    if not uses:
        raise CommandError("every node of this class has joined; add --replace, or more nodes to the inventory")
    token, record = tokens.create(
        pin,
        kind=options.kind or "",
        names=names,
        uses=uses,
        expires=time.time() + options.ttl,
        replace=options.replace,
    )
    records.keep_token(record)
    if options.json:
        print(json.dumps({**_shown(record, 0), "token": str(token)}))
    else:
        print(token)
        print(f"id {record.id}, valid until {_time(record.expires)}, for {_who(record)}", file=sys.stderr)


def show(options: argparse.Namespace) -> None:
    """Print tokens and joined nodes, without secrets."""
    records = _records()
    try:
        joined, used = records.joined()
    except JoinError as error:
        raise CommandError(str(error)) from error
    shown = [_shown(record, len(used.get(record.id, ()))) for record in records.all_tokens()]
    nodes = [
        {"name": name, "token": each.token, "time": _time(each.time), "address": each.address}
        for name, each in joined.items()
    ]
    if options.json:
        print(json.dumps({"schema": 1, "tokens": shown, "joined": nodes}))
        return
    for title, rows in (("tokens", shown), ("joined", nodes)):
        if not rows:
            print(f"no {title}")
            continue
        table = Table(title=title, box=None, title_justify="left")
        for column in rows[0]:
            table.add_column(column)
        for row in rows:
            table.add_row(*map(str, row.values()))
        Console().print(table)


def revoke(options: argparse.Namespace) -> None:
    """Revoke tokens.

    Raises:
        CommandError: there is no such token.
    """
    records = _records()
    gone = {name: name.isalnum() and records.remove_token(name) for name in options.id}
    if options.json:
        print(json.dumps({"schema": 1, "revoked": [name for name, was in gone.items() if was]}))
    lacking = [name for name, was in gone.items() if not was]
    if lacking:
        raise CommandError(f"no token {', '.join(lacking)}; `isthmus node token list` shows their ids")


def forget(options: argparse.Namespace) -> None:
    """Release the names of nodes that have left.

    Raises:
        CommandError: an invalid name.
    """
    records = _records()
    try:
        joined, _ = records.joined()
    except JoinError as error:
        raise CommandError(str(error)) from error
    known = [name for name in options.name if name in joined]
    for name in known:
        records.forget(name)
    if options.json:
        print(json.dumps({"schema": 1, "forgotten": known}))
    elif lacking := [name for name in options.name if name not in joined]:
        print(f"no node has joined as {', '.join(lacking)}", file=sys.stderr)


def _records() -> Records:
    if os.geteuid():
        raise CommandError("only root can read tokens; use sudo on the controller")
    return Records()


def _names(text: str) -> list[str]:
    if "[" not in text:
        return [name for name in text.split(",") if name]
    try:
        return process.run(["scontrol", "show", "hostnames", text], timeout_s=30).stdout.split()
    except ProcessError as error:
        raise CommandError(f"{text} is no list of nodes; write e.g. c3,c5 or c[3-5]") from error


def _shown(record: Record, used: int) -> dict[str, Any]:
    state = "expired" if record.expires <= time.time() else "used" if used >= record.uses else "valid"
    return {
        "id": record.id,
        "for": _who(record),
        "used": f"{used}/{record.uses}",
        "until": _time(record.expires),
        "replace": record.replace,
        "state": state,
    }


def _who(record: Record) -> str:
    return f"class {record.kind}" if record.kind else ",".join(record.names)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
