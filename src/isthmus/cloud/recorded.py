"""The record as a file: 0600, whole or not there, written by one run at a time."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from types import TracebackType
from typing import TextIO

from isthmus.cloud import ownership
from isthmus.filters.errors import InputError
from isthmus.support import durable


class Recorded:
    """The record of one cluster, locked while it is open.

    Args:
        path: of the file; its folder is made, 0700.
        dry: write nothing.
    """

    def __init__(self, path: Path, *, dry: bool) -> None:
        self.path, self._dry = path, dry
        self._lock: TextIO | None = None
        self.current: ownership.Record | None = None

    def __enter__(self) -> Recorded:
        """Lock it.

        Raises:
            InputError: another run has it.
        """
        if not self._dry:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = self.path.with_suffix(".lock").open("a", encoding="utf-8")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(f"another run changes this cluster ({self.path} is locked)", "wait for it") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Unlock it."""
        if self._lock:
            self._lock.close()

    def load(self) -> ownership.Record | None:
        """Read it; None where there is none.

        Raises:
            InputError: it is damaged.
        """
        try:
            text = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{self.path} is damaged: {error}", "restore it from a backup") from error
        self.current = ownership.from_json(text, str(self.path))
        return self.current

    def save(self, record: ownership.Record) -> None:
        """Write it."""
        if not self._dry and record != self.current:
            durable.write(self.path, json.dumps(ownership.to_json(record), indent=1) + "\n", 0o600)
        self.current = record
