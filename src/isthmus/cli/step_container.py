"""isthmus-step-container: started by Slurm's plugin for a step, or a job, with --container-image or related options.

It is a separate program, as each such srun waits for it: it imports little, and a pull's modules only when there is
something to pull.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isthmus.cli.errors import CommandError
from isthmus.model import images
from isthmus.model.images import DEFAULT_TAG, Reference
from isthmus.steps import container
from isthmus.steps.container import Options, StepError

DESCRIPTION = """Check the options of `srun --container-image`, pull the image unless it is cached, and print the nodes'
plan as JSON. Slurm's plugin starts this before srun requests nodes; by hand it shows what a step would get. sbatch and
salloc only check (--check): each srun of the job pulls for itself. The registry is queried for images that are not in
~/.isthmus/images, and each time for the tag `latest`."""
EPILOG = """examples:
  srun --container-image=debian:13 cat /etc/os-release
  isthmus-step-container --container-image=debian:13      # what this does on each node

exit status: 0 printed, 1 it cannot be done (standard error says why), 2 wrong usage"""
_PAIRS = (
    ("mount-home", "mount the home in the container"),
    ("remap-root", "be root in the container"),
    ("entrypoint", "start the image's entrypoint with the command as its arguments"),
)


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    command = argparse.ArgumentParser(
        prog="isthmus-step-container",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_argument("--check", action="store_true", help="only check the options, without the registry")
    command.add_argument("--container-image", metavar="IMAGE|FILE", default="", help="a name, or the path of a file")
    command.add_argument("--container-mounts", metavar="SRC:DST[:FLAGS][,...]", default="", help="flags: ro, rw")
    command.add_argument("--container-workdir", metavar="PATH", default="", help="working directory of tasks")
    command.add_argument("--container-env", metavar="NAME[,NAME...]", default="", help="variables to keep from the job")
    for name, help_text in _PAIRS:
        command.add_argument(f"--container-{name}", action="store_true", help=help_text)
        command.add_argument(f"--no-container-{name}", action="store_true", help="do not (default)")
    command.add_argument("--container-writable", action="store_true", help="let tasks write to the root")
    command.add_argument("--container-readonly", action="store_true", help="do not let them (default)")
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the plan, or nothing with --check; return the exit status."""
    options = parser().parse_args(arguments)
    os.umask(0o077)
    try:
        plan = _plan(options)
    except (StepError, CommandError, OSError) as error:
        print(f"isthmus: {error}", file=sys.stderr)
        return 1
    if plan:
        print(plan)
    return 0


def _plan(options: argparse.Namespace) -> str:
    asked = _asked(options)
    program = shutil.which("apptainer")
    if program is None:
        raise StepError("apptainer is not on PATH here; an administrator installs it with playbooks/apptainer.yml")
    if problem := container.lacking(asked, os.path.exists):
        raise StepError(problem)
    if container.is_file(asked.image):
        path, config = _file(asked.image), dict[str, Any]()
    else:
        reference = _reference(asked.image)
        if options.check:
            return ""
        path, config = _cached(reference) or _pulled(reference)
    return "" if options.check else container.plan(asked, path, config, str(Path.home()), program)


def _asked(options: argparse.Namespace) -> Options:
    if not options.container_image:
        raise StepError("--container-image is missing; the other container options need it")
    for first, second in (
        *((f"container_{name}", f"no_container_{name}") for name in ("mount_home", "remap_root", "entrypoint")),
        ("container_writable", "container_readonly"),
    ):
        if getattr(options, first) and getattr(options, second):
            raise StepError(f"--{first} and --{second} exclude one another; leave one out".replace("_", "-"))
    return Options(
        options.container_image,
        container.mounts(options.container_mounts, os.getcwd()),
        container.workdir(options.container_workdir),
        container.variables(options.container_env),
        home=options.container_mount_home,
        root=options.container_remap_root,
        entrypoint=options.container_entrypoint,
        writable=options.container_writable,
    )


def _reference(image: str) -> Reference:
    try:
        return images.parse(container.image_name(image))
    except ValueError as error:
        raise StepError(f"--container-image: {error}") from error


def _file(image: str) -> Path:
    path = Path(image).absolute()
    if not path.is_file():
        raise StepError(f"--container-image: there is no file {path}; name one that every node sees")
    return path


def _cached(image: Reference) -> tuple[Path, dict[str, Any]] | None:
    """Return the file of a cached image by this name, and its entrypoint and command."""
    from isthmus.images.cache import Cache
    from isthmus.images.known import Known

    folder = Path.home() / ".isthmus/images"
    known, cache = Known(folder), Cache(folder)
    digest = known.digest(image) if image.digest or image.tag != DEFAULT_TAG else None
    config = known.kept_config(digest) if digest else None
    if digest is None or config is None:
        return None
    cache.use(digest)
    return cache.path(digest), config


def _pulled(image: Reference) -> tuple[Path, dict[str, Any]]:
    """Pull the image into the cache; return the same."""
    from isthmus.cli.commands import pull as pulling
    from isthmus.images.errors import ImageError
    from isthmus.images.known import Known
    from isthmus.images.pull import pull
    from isthmus.support import private
    from isthmus.support.private import PrivateError

    try:
        private.check(Path.home() / ".isthmus")
        workspace = pulling.workspace(os.environ, Path.home(), None)
        with pulling.show_progress(str(image)) as progress:
            pulled = pull(image, workspace, progress)
        known = Known(workspace.cache)
        config = known.config(image, pulled.digest, workspace)
    except (ImageError, PrivateError) as error:
        raise CommandError(str(error)) from error
    known.remember(image, pulled.digest)
    return pulled.path, config


if __name__ == "__main__":
    sys.exit(main())
