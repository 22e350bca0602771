"""`isthmus images access` and `isthmus images list --registry`: what the user has in the cluster's registry."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError
from isthmus.clients import registry
from isthmus.clients.registry import Login, RegistryError
from isthmus.model.registry import PRIVATE, Access, Overview, Readers, Repository, is_repository, write_overview

DESCRIPTION = """Say who may pull an image of yours from the cluster's registry; without a choice, show who may.

What you push is private until you say otherwise. The choice holds for all tags of the image, and stays when you push
again; who was let in before can pull for six minutes more. Nobody but you can push to your names or delete them."""
EPILOG = """examples:
  isthmus images access tool --users bob,carol  these may pull ctl:5000/you/tool, too
  isthmus images access tool --site             everybody with an account may
  isthmus images access tool --private          nobody else may, as in the beginning
  isthmus images access tool                    who may now
  isthmus images access                         of all your images

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""
_AUTHFILE = ".apptainer/docker-config.json"


def register(verbs: Any) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "access",
        help="say who may pull your images from the cluster's registry",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("name", nargs="?", metavar="NAME", help="of an image in the registry: tool is ctl:5000/you/tool")
    choice = verb.add_mutually_exclusive_group()
    choice.add_argument("--private", action="store_true", help="nobody but you")
    choice.add_argument("--site", action="store_true", help="every user of the site")
    choice.add_argument("--users", metavar="USER,...", help="these, and you")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    verb.set_defaults(run=_access)


def show(options: argparse.Namespace) -> None:
    """Show what the user has there.

    Raises:
        CommandError: the registry does not say.
    """
    try:
        found = registry.overview(_login())
    except RegistryError as error:
        raise CommandError(str(error)) from error
    if options.json:
        print(json.dumps(write_overview(found)))
        return
    _print(found)


def _access(options: argparse.Namespace) -> None:
    wanted = _wanted(options)
    if wanted and not options.name:
        raise CommandError("of which image? see `isthmus images list --registry`", 2)
    try:
        login = _login()
        found = registry.overview(login)
        name = _name(options.name, found.user, login.address) if options.name else ""
        if wanted:
            registry.set_access(login, name, wanted)
    except RegistryError as error:
        raise CommandError(str(error)) from error
    said = {each.name: each.access for each in found.repositories if not name or each.name == name}
    said |= {name: wanted or said.get(name, PRIVATE)} if name else {}
    if options.json:
        repositories = [Repository(each, access) for each, access in said.items()]
        rows = write_overview(Overview(found.user, 0, 0, tuple(repositories)))["repositories"]
        print(
            json.dumps({"schema": 1, "repositories": [{key: each[key] for key in ("name", "access")} for each in rows]})
        )
        return
    for each, access in said.items():
        print(f"{login.address}/{each}: {access.words()}")
    if not said:
        print(f"nothing there; push one: `skopeo copy IMAGE docker://{login.address}/{found.user}/NAME`")


def _wanted(options: argparse.Namespace) -> Access | None:
    if options.private:
        return PRIVATE
    if options.site:
        return Access(Readers.SITE)
    if options.users is None:
        return None
    users = frozenset(filter(None, options.users.split(",")))
    if not users:
        raise CommandError("--users names nobody; say --private", 2)
    return Access(Readers.USERS, users)


def _name(word: str, user: str, address: str) -> str:
    """Return the repository that a user means: `tool`, `alice/tool`, or with the registry in front and a tag behind."""
    name = word.removeprefix("docker://").removeprefix(f"{address}/").partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = f"{head}{slash}{tail.partition(':')[0]}"
    if name.partition("/")[0] != user:
        name = f"{user}/{name}"
    if not is_repository(name):
        raise CommandError(f"{word!r} is no name of an image; use a-z, 0-9, and . _ - between them")
    return name


def _print(found: Overview) -> None:
    table = Table(box=None, header_style="")
    table.add_column("IMAGE", overflow="fold")
    for title in ("DIGEST", "MAY PULL"):
        table.add_column(title, no_wrap=True)
    for each in found.repositories:
        named = [(f"{each.name}:{tag}", digest) for tag, digest in each.tags.items()]
        named += [(f"{each.name}@{digest}", digest) for digest in each.untagged]
        for name, digest in named or [(each.name, "")]:
            table.add_row(name, digest[7:19] or "-", each.access.words())
    for name in found.shared:
        table.add_row(name, "-", "shared with you")
    if table.row_count:
        Console().print(table)
    print(f"{_gib(found.used_bytes)} of {_gib(found.quota_bytes)} used")


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"


def _login() -> Login:
    return registry.login(Path.home() / _AUTHFILE)
