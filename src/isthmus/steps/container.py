"""`srun --container-image`: its options, and their translation for a node; pure.

The options have the names and the forms of pyxis (github.com/NVIDIA/pyxis, README.md), so that scripts move over
unchanged. The SPANK plugin (src/spank/container.c) hands them to `isthmus-step-container`, which checks them before
Slurm is asked for anything, and leaves what this module decides in the step's environment, as JSON:

    schema       1
    command      Apptainer's, which holds the image open on a node
    environment  NAME=value, of Apptainer itself
    kept         names of variables of the job that win over the image's; NAME* for all that begin so
    entrypoint   words before the task's own command
    workdir      where tasks start
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

SCHEMA = 1
HOLD = Path("/usr/lib/isthmus/isthmus_hold")
_HELD = "/.isthmus/hold"
# Of the user's session, or of Apptainer's own and of no meaning to a program.
_KEPT = ("HOME", "USER", "LOGNAME", "PWD", "SHLVL", "_", "TERM", "PS1", "PROMPT_COMMAND", "APPTAINER*", "SINGULARITY*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FLAGS = ("ro", "rw")
_FORM = "write SRC:DST, SRC:DST:ro or one absolute path, joined by commas"
# As enroot has it, which pyxis hands names to.
_REGISTRY_END = "#"


class StepError(Exception):
    """An option that cannot be followed; the message names it, and the remedy."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the node that a container shows."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """What a step asks for.

    Attributes:
        image: a name, or the path of a file.
        mounts: in the order they were given.
        workdir: where tasks start; empty for the image's own.
        kept: variables of the job that win over the image's.
        home: whether the user's home is shown.
        root: whether the user is root inside.
        entrypoint: whether the image's entrypoint is started.
        writable: whether the root may be written to.
    """

    image: str
    mounts: tuple[Mount, ...] = ()
    workdir: str = ""
    kept: tuple[str, ...] = ()
    home: bool = False
    root: bool = False
    entrypoint: bool = False
    writable: bool = False


def is_file(image: str) -> bool:
    """Return whether an image is named by the path of its file."""
    return image.startswith(("/", "./", "../"))


def image_name(image: str) -> str:
    """Return a name as registries have it: `registry#name:tag` means `registry/name:tag`."""
    return image.replace(_REGISTRY_END, "/", 1)


def mounts(text: str, folder: str) -> tuple[Mount, ...]:
    """Read `--container-mounts`.

    Args:
        text: SRC:DST[:FLAGS][,SRC:DST[:FLAGS]...]; a lone SRC is shown at its own path, and flags are joined by `+`.
        folder: where relative sources begin (`./` or `../`).

    Raises:
        StepError: it has another form.
    """
    return tuple(_mount(word, folder) for word in text.split(",")) if text else ()


def variables(text: str) -> tuple[str, ...]:
    """Read `--container-env`.

    Raises:
        StepError: a name that no variable has.
    """
    names = tuple(text.split(",")) if text else ()
    wrong = next((name for name in names if not _VARIABLE.fullmatch(name)), None)
    if wrong is not None:
        raise StepError(f"--container-env: {wrong!r} is no name of a variable; write NAME or NAME,NAME")
    return names


def workdir(text: str) -> str:
    """Read `--container-workdir`.

    Raises:
        StepError: a relative path.
    """
    if text and not text.startswith("/"):
        raise StepError(f"--container-workdir={text}: not an absolute path; it is one in the container")
    return text


def lacking(asked: Options, exists: Callable[[str], bool]) -> str:
    """Return the missing source of a mount; empty when all exist."""
    absent = next((mount.source for mount in asked.mounts if not exists(mount.source)), None)
    return f"--container-mounts: there is no {absent} here; name what is on every node" if absent else ""


def plan(asked: Options, image: Path, config: Mapping[str, Any], home: str, apptainer: str) -> str:
    """Return what the nodes do, as JSON.

    Args:
        asked: what the user wants.
        image: the file that Apptainer opens.
        config: of the image: `Entrypoint` and `WorkingDir`; empty where it is not known.
        home: the user's.
        apptainer: path of the program.
    """
    shown = [*asked.mounts, *([Mount(home, home)] if asked.home else []), Mount(str(HOLD), _HELD, read_only=True)]
    command = [
        *(apptainer, "--quiet", "exec", "--cleanenv", "--no-home", "--no-mount", "home,hostfs,bind-paths,cwd"),
        *(["--fakeroot"] if asked.root else []),
        *(["--writable-tmpfs"] if asked.writable else []),
        *(word for mount in shown for word in ("--mount", _bind(mount))),
        str(image),
        _HELD,
    ]
    return json.dumps(
        {
            "schema": SCHEMA,
            "command": command,
            "environment": [f"PATH={os.defpath}:/usr/sbin:/sbin", f"HOME={home}", "LANG=C.UTF-8"],
            "kept": [*_KEPT, *asked.kept],
            "entrypoint": list(config.get("Entrypoint") or []) if asked.entrypoint else [],
            "workdir": asked.workdir or str(config.get("WorkingDir") or "/"),
        }
    )


def _mount(word: str, folder: str) -> Mount:
    source, _, rest = word.partition(":")
    target, _, flags = rest.partition(":")
    named = [flag for flag in flags.split("+") if flag]
    unknown = next((flag for flag in named if flag not in _FLAGS), None)
    if unknown is not None:
        raise StepError(f"--container-mounts: {word}: there is no flag {unknown!r}; flags are {' and '.join(_FLAGS)}")
    if source.startswith(("./", "../")):
        source = os.path.normpath(os.path.join(folder, source))
    if not source.startswith("/") or not (target or source).startswith("/"):
        raise StepError(f"--container-mounts: {word or 'an empty part'}: not absolute paths; {_FORM}")
    place = PurePosixPath(target or source)
    if str(place) == "/":
        raise StepError(f"--container-mounts: {word}: / is the image itself; mount below it")
    return Mount(source, str(place), read_only="ro" in named)


def _bind(mount: Mount) -> str:
    """Return the value of Apptainer's --mount: a line of CSV, so that a path may hold anything but a line's end."""
    line = io.StringIO()
    fields = [
        "type=bind",
        f"source={mount.source}",
        f"destination={mount.target}",
        *(["ro"] if mount.read_only else []),
    ]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
