"""`isthmus images access` and `isthmus images list --registry`: the user's images in the cluster's registry."""

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

DESCRIPTION = """Set who may pull an image of yours from the cluster's registry; without an option, show who may.

Images are private by default. The setting applies to all tags of the image, and to later pushes; revoked users can pull
for six minutes more. Only you can push to your names or delete them."""
EPILOG = """examples:
  isthmus images access tool --users bob,carol  bob and carol may pull ctl:5000/you/tool, too
  isthmus images access tool --site             everybody with an account may
  isthmus images access tool --private          only you may, the default
  isthmus images access tool                    who may now
  isthmus images access                         the same for all your images

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""
_AUTHFILE = ".apptainer/docker-config.json"


def register(verbs: Any) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "access",
        help="set who may pull your images from the cluster's registry",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("name", nargs="?", metavar="NAME", help="an image in the registry: tool is ctl:5000/you/tool")
    choice = verb.add_mutually_exclusive_group()
    choice.add_argument("--private", action="store_true", help="nobody but you")
    choice.add_argument("--site", action="store_true", help="every user of the site")
    choice.add_argument("--users", metavar="USER,...", help="these, and you")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    verb.set_defaults(run=_access)


def show(options: argparse.Namespace) -> None:
    """List the user's images in the registry.

    Raises:
        CommandError: the registry did not answer.
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
        raise CommandError("the image is missing; see `isthmus images list --registry`", 2)
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
        print(f"no images; push one: `skopeo copy IMAGE docker://{login.address}/{found.user}/NAME`")


def _wanted(options: argparse.Namespace) -> Access | None:
    if options.private:
        return PRIVATE
    if options.site:
        return Access(Readers.SITE)
    if options.users is None:
        return None
    users = frozenset(filter(None, options.users.split(",")))
    if not users:
        raise CommandError("--users is empty; use --private", 2)
    return Access(Readers.USERS, users)


def _name(word: str, user: str, address: str) -> str:
    """Return the repository of a name: `tool`, `alice/tool`, also with the registry before it and a tag after it."""
    name = word.removeprefix("docker://").removeprefix(f"{address}/").partition("@")[0]
    head, slash, tail = name.rpartition("/")
    name = f"{head}{slash}{tail.partition(':')[0]}"
    if name.partition("/")[0] != user:
        name = f"{user}/{name}"
    if not is_repository(name):
        raise CommandError(f"{word!r} is no name of an image; use a-z and 0-9, separated by . _ or -")
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
