"""`isthmus node join`: this host becomes a node of a cluster."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from dataclasses import asdict
from pathlib import Path

from isthmus.cli.commands.node import PORT
from isthmus.cli.errors import CommandError
from isthmus.node import tokens
from isthmus.node.errors import JoinError, RefusedError
from isthmus.node.files import Tree
from isthmus.node.host import Host
from isthmus.node.joining import STATE, Joining, Kept
from isthmus.node.remote import Controller
from isthmus.node.tokens import Token

REFUSED = 3


def run(options: argparse.Namespace) -> None:
    """Join, and print what changed.

    Raises:
        CommandError: it was refused, or not completed.
    """
    if os.geteuid():
        raise CommandError("only root can make this host a node; use sudo")
    given = _given(options.file) if options.file else {}
    host = Host(Tree())
    kept = _kept(host)
    text = options.token or given.get("TOKEN", "")
    server = options.server or given.get("SERVER") or (kept.server if kept else "")
    name = options.name or given.get("NAME") or (kept.name if kept else "") or host.name()
    if not server:
        raise CommandError("the controller is missing; add --server HOST:PORT")
    if not text and not kept:
        raise CommandError(
            "this host has not joined yet; add --token, from `isthmus node token create` on the controller"
        )
    server = server if ":" in server else f"{server}:{PORT}"
    try:
        token: Token | None = tokens.parse(text) if text else None
        pin = token.pin if token else kept.pin if kept else ""
        whole = bool(kept and kept.whole and kept.pin == pin)
        controller = Controller(server, pin)
        joining = Joining(host, controller, _progress, check=options.check, install=options.packages)
        result = joining.run(name, token, Kept(server, name, pin, whole))
    except RefusedError as error:
        raise CommandError(str(error), REFUSED) from error
    except JoinError as error:
        raise CommandError(str(error)) from error
    if options.file and not options.check:
        options.file.unlink(missing_ok=True)
    if options.json:
        print(json.dumps(asdict(result)))
    else:
        what = f"{len(result.changes)} changes" if result.changed else "nothing to change"
        print(f"{result.name} {'would join' if options.check else 'is a node of'} {result.cluster}: {what}")


def _progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _given(path: Path) -> dict[str, str]:
    try:
        with path.open() as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = [line.strip().partition("=") for line in file.read(1 << 16).splitlines()]
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read ({error}); it has lines TOKEN=..., SERVER=..., NAME=...") from error
    if stat.S_IMODE(mode) & 0o077:
        raise CommandError(
            f"{path} is open to others: revoke its token, and give the next one in a file of mode 0600", REFUSED
        )
    given = {name: value.strip("\"'") for name, _, value in lines if name and not name.startswith("#")}
    if unknown := set(given) - {"TOKEN", "SERVER", "NAME"}:
        raise CommandError(f"{path} has {', '.join(sorted(unknown))}; it has lines TOKEN=, SERVER=, NAME=", REFUSED)
    return given


def _kept(host: Host) -> Kept | None:
    try:
        return Kept(**json.loads(host.tree.text(f"{STATE}/joined.json")))
    except (ValueError, TypeError):
        return None
