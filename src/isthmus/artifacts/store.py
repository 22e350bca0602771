"""The cache: programs by the hash of their content, with an index by recipe.

    blobs/<sha256>       an executable; its name is its content
    index/<key>.json     the blob of a recipe, and how it was obtained
    locks/<key>          held while a recipe is executed: of two concurrent runs the second finds the first's result
    work/                incomplete files

A recipe's key changes with anything that may change the program: version, machine, checksums, Go modules, Go.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock

from isthmus.artifacts.errors import ChecksumError
from isthmus.model.programs import Way
from isthmus.support import durable

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the index."""

    schema: int
    program: str
    sha256: str
    way: Way


class Store:
    """The cache in one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("blobs", "index", "locks", "work"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock a recipe; the lock ends with its process."""
        return FileLock(self.root / "locks" / key)

    @contextmanager
    def workspace(self, name: str) -> Iterator[Path]:
        """Provide a folder for incomplete files, on the cache's file system."""
        with durable.workspace(self.root / "work", name) as folder:
            yield folder

    def blob(self, entry: Entry) -> Path:
        """Return the executable of an entry."""
        return self.root / "blobs" / entry.sha256

    def find(self, key: str) -> Entry | None:
        """Return the entry of a recipe, if its blob is present and unchanged.

        Raises:
            ChecksumError: the blob was modified.
        """
        try:
            known = json.loads((self.root / "index" / f"{key}.json").read_text(encoding="utf-8"))
            entry = Entry(known["schema"], known["program"], known["sha256"], Way(known["way"]))
        except (FileNotFoundError, ValueError, KeyError):
            return None
        blob = self.blob(entry)
        if not blob.exists():
            return None
        check(blob, entry.sha256, "remove the file and run again")
        return entry

    def keep(self, key: str, program: str, way: Way, executable: Path) -> Entry:
        """Store a program: first its content, then its entry."""
        entry = Entry(SCHEMA, program, digest(executable), way)
        executable.chmod(0o755)
        durable.move(executable, self.blob(entry))
        durable.write(self.root / "index" / f"{key}.json", json.dumps(asdict(entry), indent=1) + "\n")
        return entry


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, expected: str, remedy: str, name: str = "") -> None:
    """Compare a file with its SHA-256.

    Args:
        path: the file.
        expected: hex digest.
        remedy: for the message of a mismatch.
        name: of the file in messages; by default its path.

    Raises:
        ChecksumError: the file has another checksum.
    """
    found = digest(path)
    if found != expected:
        raise ChecksumError(name or str(path), expected, found, remedy)
