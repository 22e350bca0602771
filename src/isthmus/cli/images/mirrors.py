"""`isthmus images mirror`: mirrors of a registry, which are tried first."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from isthmus.cli.errors import CommandError
from isthmus.images import mirrors
from isthmus.images.mirrors import MirrorsError

SCHEMA = 1
DESCRIPTION = """Try mirrors first for images of a registry, or of a part of one; without arguments, list the mirrors.

This applies to `isthmus pull`, to your pods and to skopeo, from the next pull on. Images that no mirror has come from
the registry itself. Your mirrors of a prefix replace the site's."""
EPILOG = """examples:
  isthmus images mirror                                     the site's mirrors and yours
  isthmus images mirror docker.io/library ctl:5000/isthmus  `image: busybox` comes from the cluster's registry
  isthmus images mirror quay.io one.example two.example/quay
  isthmus images mirror docker.io/library --remove

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""


def register(verbs: Any) -> None:
    """Add the verb."""
    verb = verbs.add_parser(
        "mirror",
        help="set mirrors of a registry",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("prefix", nargs="?", metavar="REGISTRY", help="host[:port][/path], the prefix of image names")
    verb.add_argument("locations", nargs="*", metavar="MIRROR", help="host[:port][/path] of a mirror")
    verb.add_argument("--remove", action="store_true", help="remove your mirrors of the registry")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    verb.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    folder = mirrors.of_user(Path.home())
    try:
        own = mirrors.read(folder)
        if options.prefix:
            own = _changed(own, options)
            mirrors.write(folder, own)
        site = mirrors.read(mirrors.SITE)
    except MirrorsError as error:
        raise CommandError(str(error)) from error
    _show(site, own, as_json=options.json)


def _changed(own: dict[str, list[str]], options: argparse.Namespace) -> dict[str, list[str]]:
    prefix, locations = options.prefix, options.locations
    if options.remove == bool(locations):
        what = "has both --remove and mirrors" if locations else "has no mirror, and no --remove"
        raise CommandError(f"the command {what}; see `isthmus images mirror --help`")
    if not options.remove:
        return own | {prefix: locations}
    if prefix not in own:
        named = ", ".join(sorted(own)) or "none"
        raise CommandError(f"you have no mirrors of {prefix}; those you have are of: {named}")
    return {name: found for name, found in own.items() if name != prefix}


def _show(site: mirrors.Mirrors, own: mirrors.Mirrors, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schema": SCHEMA, "site": site, "own": own}))
        return
    listed = [(name, found, "yours") for name, found in own.items()]
    listed += [(name, found, "the site's") for name, found in site.items() if name not in own]
    for name, found, whose in sorted(listed):
        print(f"{name} -> {', '.join(found)} ({whose})")
    if not listed:
        print("no mirrors; `isthmus images mirror --help` shows how to name one")
