"""`isthmus images`: lists and prunes the user's image cache; and their images in the registry."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from isthmus.cli.errors import CommandError
from isthmus.cli.images import mirrors as image_mirrors
from isthmus.cli.images import registry as image_registry
from isthmus.images import keep
from isthmus.images.keep import Kept
from isthmus.images.known import Known
from isthmus.model.images import parse
from isthmus.support import private

SCHEMA = 1
DESCRIPTION = """Images in ~/.isthmus/images, of `isthmus pull` and of pods. Images in use by pods are kept.

The kubelet removes images that it pulled after the site's retention time, or when the site's limit is exceeded; others
are only removed by you. Layers are cached too, so that a next image on the same base is pulled quickly; they are
removed by the same rules."""
EPILOG = """examples:
  isthmus images list                          names, sizes, and times of last use
  isthmus images remove ctl:5000/me/tool 1f2e  by name, or by the first digits of the digest
  isthmus images prune --dry-run               what was not used for 30 days
  isthmus images prune --unused-days 0         all that are not in use, nor were within the last hour
  isthmus images prune --max-gib 20            the least recently used, until the rest fits
  isthmus images list --registry               your images in the cluster's registry, and their size
  isthmus images access tool --users bob       who may pull what you have pushed
  isthmus images mirror --help                 pull `image: busybox` from the cluster's registry

exit status: 0 done, 1 it could not be done (standard error says why), 2 wrong usage"""
_DAY_S = 24 * 3600.0
_DIGITS = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{4,64})")


def register(subparsers: Any) -> None:
    """Add the command and its own sub-commands."""
    command = subparsers.add_parser(
        "images",
        help="list and remove your container images",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = _verb(verbs, "list", "show what is there", _list)
    listing.add_argument("--registry", action="store_true", help="those in the cluster's registry, not in your cache")
    removal = _verb(verbs, "remove", "remove images", _remove)
    removal.add_argument("images", nargs="+", metavar="IMAGE", help="a name, or the first digits of a digest")
    removal.add_argument("--force", action="store_true", help="also images in use by your pods")
    pruning = _verb(verbs, "prune", "remove images that were not used recently", _prune)
    pruning.add_argument("--unused-days", type=_days, default=None, metavar="N", help="30 unless --max-gib is given")
    pruning.add_argument("--max-gib", type=_days, default=None, metavar="N", help="limit of the total size")
    pruning.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    image_registry.register(verbs)
    image_mirrors.register(verbs)


def _verb(verbs: Any, name: str, help_text: str, run: Any) -> Any:
    verb = verbs.add_parser(name, help=help_text, description=f"{help_text[0].upper()}{help_text[1:]}.")
    verb.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    verb.set_defaults(run=run)
    return verb


def _list(options: argparse.Namespace) -> None:
    if options.registry:
        image_registry.show(options)
        return
    images, layers = keep.listed(_cache(), _pods()), keep.layers(_cache())
    if options.json:
        print(_json([*images, *layers]))
        return
    if images:
        Console().print(_table(images))
    else:
        print(f"no image in {_cache()}; `isthmus pull` and pods add some")
    if layers:
        print(f"and, for later pulls, {_summary(layers)}")


def _remove(options: argparse.Namespace) -> None:
    images = keep.listed(_cache(), _pods())
    wanted = list({each.path: each for word in options.images for each in _found(word, images)}.values())
    if used := [each for each in wanted if each.runs and not options.force]:
        names = ", ".join(_name(each) for each in used)
        raise CommandError(f"your pods use {names}; delete them first, or use --force. Nothing was removed")
    _go(wanted, options.json, dry=False)


def _prune(options: argparse.Namespace) -> None:
    days = 30.0 if options.unused_days is None and options.max_gib is None else options.unused_days
    size = None if options.max_gib is None else int(options.max_gib * (1 << 30))
    images = [*keep.listed(_cache(), _pods()), *keep.layers(_cache())]
    unused_s = None if days is None else days * _DAY_S
    _go(keep.surplus(images, time.time(), unused_s=unused_s, size_bytes=size), options.json, dry=options.dry_run)


def _go(images: Sequence[Kept], as_json: bool, *, dry: bool) -> None:
    if not dry:
        keep.remove(_cache(), images)
    if as_json:
        print(_json(images))
        return
    for each in images:
        if not each.is_layer:
            print(_name(each))
    print(f"{_summary(images)}, {'would go' if dry else 'removed'}")


def _found(word: str, images: Sequence[Kept]) -> list[Kept]:
    """Return the image of a name, or of the first digits of its digest, in all its files.

    Raises:
        CommandError: there is none, or several.
    """
    digits = _DIGITS.fullmatch(word)
    digests = {each.digest for each in images if digits and each.digest[7:].startswith(digits["hex"])}
    try:
        digests |= {Known(_cache()).digest(parse(word)) or ""} - {""}
    except ValueError as error:
        if not digits:
            raise CommandError(str(error)) from error
    if len(digests) != 1:
        what = "is not there" if not digests else f"could be {' or '.join(sorted(digests))}"
        raise CommandError(f"{word} {what}; see `isthmus images list`. Nothing was removed")
    return [each for each in images if each.digest in digests]


def _table(images: Sequence[Kept]) -> Table:
    table = Table(box=None, header_style="")
    table.add_column("IMAGE", overflow="fold")
    for title in ("DIGEST", "SIZE", "LAST USED", ""):
        table.add_column(title, no_wrap=True)
    for each in images:
        names = "\n".join(name.removeprefix("docker://") for name in each.names) or "-"
        used = datetime.fromtimestamp(each.used_s).astimezone().strftime("%Y-%m-%d %H:%M")
        note = "outdated" if each.is_old else "in use" if each.runs else ""
        table.add_row(names, each.digest[7:19], _size(each.size_bytes), used, note)
    return table


def _json(kept: Sequence[Kept]) -> str:
    rows = [
        asdict(each) | {"used": datetime.fromtimestamp(each.used_s, UTC).isoformat(timespec="seconds")}
        for each in kept
        if not each.is_layer
    ]
    for each in rows:
        del each["used_s"], each["is_layer"]
    layers = [each.size_bytes for each in kept if each.is_layer]
    size = sum(each.size_bytes for each in kept)
    of_layers = {"count": len(layers), "size_bytes": sum(layers)}
    return json.dumps({"schema": SCHEMA, "size_bytes": size, "images": rows, "layers": of_layers}, default=str)


def _summary(kept: Sequence[Kept]) -> str:
    """Return how many there are, and their size."""
    layers = sum(each.is_layer for each in kept)
    counts = {"image": len(kept) - layers, "layer": layers}
    # Without both there is no image.
    shown = {name: count for name, count in counts.items() if count} or {"image": 0}
    words = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in shown.items()]
    return f"{' and '.join(words)}, {_size(sum(each.size_bytes for each in kept))}"


def _name(image: Kept) -> str:
    return " ".join(name.removeprefix("docker://") for name in image.names) or image.digest


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _days(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1e6:
        raise ValueError(text)
    return number


def _cache() -> Path:
    private.check(Path.home() / ".isthmus")
    return Path.home() / ".isthmus/images"


def _pods() -> Path:
    return Path.home() / ".isthmus/pods"
