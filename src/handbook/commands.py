"""reference/commands.md: every command of `isthmus`, from the parsers that read its command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial

from handbook.markdown import block, code, page, table
from isthmus.cli.main import parser

_WIDTH = 100


def commands(top: argparse.ArgumentParser | None = None) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Give each command with its parser, the top one first; `isthmus network list` is one."""
    top = top or parser()
    top.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=_WIDTH)
    yield top.prog, top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from commands(one)


def text() -> str:
    """Return the page."""
    return page(
        "# Commands",
        "All commands of `isthmus`, each with its options, made from the parsers that read them. `isthmus COMMAND"
        " --help` says the same in a terminal.",
        *(_command(name, one) for name, one in commands()),
    )


def _command(name: str, one: argparse.ArgumentParser) -> str:
    rows = [(_spelled(action), _help(one, action)) for action in one._actions if _shown(action)]
    return page(
        f"{'#' * min(len(name.split()) + 1, 4)} {name}",
        one.description or "",
        block(one.format_usage().removeprefix("usage: ")),
        table(("argument", "what it does"), rows) if rows else "",
        block(one.epilog) if one.epilog else "",
    ).strip()


def _shown(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS


def _spelled(action: argparse.Action) -> str:
    if isinstance(action, argparse._SubParsersAction):
        return "COMMAND"
    if not action.option_strings:
        return code(action.metavar or action.dest)
    value = "" if action.nargs == 0 else f" {action.metavar or _choices(action) or action.dest.upper()}"
    return ", ".join(code(f"{option}{value}") for option in action.option_strings)


def _choices(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices or ()))


def _help(one: argparse.ArgumentParser, action: argparse.Action) -> str:
    if isinstance(action, argparse._SubParsersAction):
        return ", ".join(code(f"{one.prog} {name}") for name in action.choices)
    said = (action.help or "").replace("%%", "%")
    needed = "needed" if action.required and action.option_strings else ""
    chosen = f"one of {', '.join(map(code, action.choices))}" if action.choices else ""
    return "; ".join(part for part in (said, chosen, needed) if part)
