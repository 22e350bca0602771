"""The record's file: mode 0600, written atomically and by one run at a time."""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from isthmus.cloud import ownership
from isthmus.filters.errors import InputError
from isthmus.support import durable

# Between two attempts to take the lock.
_LOOK_S = 0.2


class Recorded:
    """The record of one cluster, locked while it is open.

    Args:
        path: of the file; its folder is created with mode 0700.
        dry: write nothing.
        wait_s: how long to wait for another run.
    """

    def __init__(self, path: Path, *, dry: bool, wait_s: float = 0) -> None:
        self.path, self._dry, self._wait_s = path, dry, wait_s
        self._lock: TextIO | None = None
        self.current: ownership.Record | None = None

    def __enter__(self) -> Recorded:
        """Take the lock.

        Raises:
            InputError: another run holds it.
        """
        if not self._dry:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = self.path.with_suffix(".lock").open("a", encoding="utf-8")
            self._take(self._lock)
        return self

    def _take(self, lock: TextIO) -> None:
        until = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    lock.close()
                    what = f"another run changes this cluster ({self.path} is locked)"
                    raise InputError(what, "wait for it") from error
                time.sleep(_LOOK_S)
            else:
                return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock."""
        if self._lock:
            self._lock.close()

    def load(self) -> ownership.Record | None:
        """Return the record; None where there is none.

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
        """Write the record."""
        if not self._dry and record != self.current:
            durable.write(self.path, json.dumps(ownership.to_json(record), indent=1) + "\n", 0o600)
        self.current = record
