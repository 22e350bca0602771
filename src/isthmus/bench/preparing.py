"""Prepares the user's home for runs: compiles the programs with the host's compiler and makes folders for output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from isthmus.clients.process import ProcessError, run

FILE = Path("/etc/isthmus/bench.json")
SCHEMA = 1
IMAGE = "bench-openmpi"
_MAKE_S = 300
_REMEDY = "an administrator installs it with playbooks/bench.yml"


class PreparingError(Exception):
    """A prerequisite of runs is missing; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The user's own place for benchmarks."""

    top: Path

    @property
    def programs(self) -> Path:
        """The programs that were compiled here."""
        return self.top / "bin"

    @property
    def runs(self) -> Path:
        """Output of runs."""
        return self.top / "runs"

    def results(self, size: str) -> Path:
        """The default file of results."""
        return self.top / f"results-{size}.json"


def images(path: Path = FILE) -> dict[str, str]:
    """Return the site's images for benchmarks: name -> reference.

    Raises:
        PreparingError: the site has none on this host.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']!r} is not {SCHEMA}")
        return {str(name): str(reference) for name, reference in document["images"].items()}
    except FileNotFoundError as error:
        raise PreparingError(f"{path} is missing: this host is not in the group bench; {_REMEDY}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PreparingError(f"{path}: {error!r}; {_REMEDY}") from error


def compile_programs(folder: Folder) -> None:
    """Compile what is missing or older than its source, with the host's Open MPI.

    Raises:
        PreparingError: the compilation failed.
    """
    for path in (folder.programs, folder.runs):
        path.mkdir(parents=True, exist_ok=True)
    with as_file(files("isthmus.bench") / "programs") as source:
        argv = ["make", "--silent", f"--directory={source}", "MPICC=mpicc.openmpi", f"OUT={folder.programs}"]
        try:
            run(argv, timeout_s=_MAKE_S)
        except ProcessError as error:
            raise PreparingError(f"the programs cannot be compiled: {error}; {_REMEDY}") from error
