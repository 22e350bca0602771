"""Makes ready what runs need in the user's home: programs that the host's own compiler makes, and room for output."""

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
_REMEDY = "an admin brings it with playbooks/bench.yml"


class PreparingError(Exception):
    """Something that runs need is not there; the words have the remedy."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The user's own place for benchmarks."""

    top: Path

    @property
    def programs(self) -> Path:
        """Those that were compiled here."""
        return self.top / "bin"

    @property
    def runs(self) -> Path:
        """Output of runs."""
        return self.top / "runs"

    def results(self, size: str) -> Path:
        """What is kept, unless the user says where."""
        return self.top / f"results-{size}.json"


def images(path: Path = FILE) -> dict[str, str]:
    """Return the site's images for benchmarks: name -> reference.

    Raises:
        PreparingError: the site has none here.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["schema"] != SCHEMA:
            raise ValueError(f"schema {told['schema']!r} is not {SCHEMA}")
        return {str(name): str(reference) for name, reference in told["images"].items()}
    except FileNotFoundError as error:
        raise PreparingError(f"{path} is missing: this host is not in the group bench; {_REMEDY}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PreparingError(f"{path}: {error!r}; {_REMEDY}") from error


def compile_programs(folder: Folder) -> None:
    """Compile what is missing or older than its source, with the host's Open MPI.

    Raises:
        PreparingError: it could not be.
    """
    for path in (folder.programs, folder.runs):
        path.mkdir(parents=True, exist_ok=True)
    with as_file(files("isthmus.bench") / "programs") as source:
        argv = ["make", "--silent", f"--directory={source}", "MPICC=mpicc.openmpi", f"OUT={folder.programs}"]
        try:
            run(argv, timeout_s=_MAKE_S)
        except ProcessError as error:
            raise PreparingError(f"the programs cannot be compiled: {error}; {_REMEDY}") from error
