"""`isthmus pull`: an image as one file on the shared home, ready to start on every node."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from isthmus.cli.errors import CommandError
from isthmus.images import ids, manifests
from isthmus.images.errors import ImageError
from isthmus.images.pull import pull
from isthmus.images.workspace import Progress, Workspace
from isthmus.model import images
from isthmus.support import private

DESCRIPTION = """Pull a container image into ~/.isthmus/images and print the path of its file.

The file is one compressed squashfs per image, found by its digest: a second pull of the same image, by whatever
name and from whichever node, reuses it. Concurrent pulls wait for the first one."""
EPILOG = """examples:
  isthmus pull ctl:5000/isthmus/debian:13             from a registry; see `apptainer registry login`
  isthmus pull debian@sha256:1f2e...                  exactly this one; needs no network once it is cached
  isthmus pull oci-archive:image.tar                  from a file
  srun apptainer exec $(isthmus pull debian:13) cat /etc/os-release

Credentials: --authfile, else $REGISTRY_AUTH_FILE, else ~/.apptainer/docker-config.json.
Room to unpack: $APPTAINER_TMPDIR, else $TMPDIR, else /var/tmp.

exit status: 0 the image is there, 1 it could not be pulled (standard error says why), 2 wrong usage"""


def register(subparsers: Any) -> None:
    """Add the command."""
    command = subparsers.add_parser(
        "pull",
        help="pull a container image, ready to start",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "image", metavar="IMAGE", type=_image, help="[docker://]NAME[:TAG][@DIGEST] or oci-archive:FILE"
    )
    command.add_argument(
        "--authfile", type=Path, metavar="FILE", help="credentials of registries, as docker login writes"
    )
    command.add_argument("--json", action="store_true", help="one JSON object, for scripts")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Pull `options.image`."""
    # As Ctrl-C does, so that no partial files are left when Slurm ends the job.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    private.check(Path.home() / ".isthmus")
    try:
        with show_progress(str(options.image)) as progress:
            pulled = pull(options.image, workspace(os.environ, Path.home(), options.authfile), progress)
    except ImageError as error:
        raise CommandError(str(error)) from error
    print(json.dumps(asdict(pulled), default=str) if options.json else pulled.path)


def workspace(environment: Mapping[str, str], home: Path, authfile: Path | None) -> Workspace:
    """Return the workspace of a user's pulls."""
    scratch = environment.get("APPTAINER_TMPDIR") or environment.get("TMPDIR") or "/var/tmp"  # noqa: S108
    named = authfile or environment.get("REGISTRY_AUTH_FILE")
    usual = home / ".apptainer/docker-config.json"
    found = Path(named) if named else usual if usual.exists() else None
    kept, arch = home / ".isthmus/images", manifests.architecture()
    return Workspace(kept, Path(scratch), found, arch, root_alone=ids.is_root_alone())


@contextmanager
def show_progress(image: str) -> Iterator[Progress]:
    """Show a pull's progress on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(image) as status:
        yield lambda doing: status.update(f"{doing} {image}")


def _image(text: str) -> images.Reference:
    try:
        return images.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
