"""`isthmus node`: nodes that join by themselves, their tokens, and problems of a node."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from isthmus.node.tokens import duration_s

PORT = 7443
EPILOG = """examples:
  isthmus node token create --nodes c[3-4]              for two nodes, valid for an hour
  isthmus node token create --class compute --ttl 7d    for all that have not joined yet
  isthmus node token list
  isthmus node join --token TOKEN --server ctl:7443     as root, on a node of the image

  isthmus node check                                    as root, on any node: its problems

exit status of check: 0 nothing is broken (warnings may be), 1 something is
exit status of join: 0 joined, 1 not yet (run it again), 3 refused and nothing changed"""


def register(subparsers: Any) -> None:
    """Add the command and its own sub-commands."""
    command = subparsers.add_parser(
        "node",
        help="let nodes join the cluster, or check this one (root only)",
        description="Nodes of the image join by themselves, with a token; any node can be checked.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _register_join(verbs)
    _verb(verbs, "check", "list this node's problems, with remedies", _check)
    forget = _verb(verbs, "forget", "let another machine join under the name of a node that left", _forget)
    forget.add_argument("name", nargs="+", help="as the inventory has it")
    token = verbs.add_parser("token", help="tokens that let nodes join", description="Run it on the controller.")
    kinds = token.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = _verb(kinds, "create", "create a token; it is shown once", _create)
    who = create.add_mutually_exclusive_group(required=True)
    who.add_argument("--nodes", help="names of the inventory, e.g. c3,c5 or c[3-5]")
    who.add_argument("--class", dest="kind", choices=["compute"], help="any node of this class")
    create.add_argument("--ttl", type=_ttl, default="1h", help="how long it is valid: 30m, 1h, 7d (1h)")
    create.add_argument("--uses", type=_count, help="how many nodes may use it (as many as there are)")
    create.add_argument("--replace", action="store_true", help="also to replace a machine that has joined")
    _verb(kinds, "list", "tokens that are valid or have expired, and who joined", _list)
    revoke = _verb(kinds, "revoke", "revoke a token; nodes that have joined stay", _revoke)
    revoke.add_argument("id", nargs="+", help="as `list` shows it")


def _register_join(verbs: Any) -> None:
    join = _verb(verbs, "join", "make this host a node of the cluster", _join)
    join.add_argument("--token", help="from the controller; not needed by a node that has joined before")
    join.add_argument("--server", help=f"the controller, HOST or HOST:PORT ({PORT})")
    join.add_argument("--name", help="the node's name in the inventory (this host's name)")
    join.add_argument("--file", type=Path, help="with lines TOKEN=, SERVER=, NAME=; removed once joined")
    join.add_argument("--packages", action="store_true", help="also install packages that this host lacks (apt)")
    join.add_argument("--check", action="store_true", help="change nothing, report what would change")


def _verb(verbs: Any, name: str, help_text: str, run: Any) -> Any:
    verb = verbs.add_parser(name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    verb.set_defaults(run=run)
    return verb


def _ttl(text: str) -> int:
    try:
        return duration_s(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 100000")
    return int(text)


# Imported here: no other command should wait for the libraries that these need.
def _create(options: argparse.Namespace) -> None:
    from isthmus.cli.node import tokens as node_tokens

    node_tokens.create(options)


def _list(options: argparse.Namespace) -> None:
    from isthmus.cli.node import tokens as node_tokens

    node_tokens.show(options)


def _revoke(options: argparse.Namespace) -> None:
    from isthmus.cli.node import tokens as node_tokens

    node_tokens.revoke(options)


def _forget(options: argparse.Namespace) -> None:
    from isthmus.cli.node import tokens as node_tokens

    node_tokens.forget(options)


def _join(options: argparse.Namespace) -> None:
    from isthmus.cli.node import join as node_join

    node_join.run(options)


def _check(options: argparse.Namespace) -> None:
    from isthmus.cli.node import check as node_check

    node_check.run(options)
