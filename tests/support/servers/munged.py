"""A munged of a test's own, with a key of its own; root says whose a credential is."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.wait import wait


class Munged:
    """One that runs.

    Attributes:
        socket: where it listens.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "socket"

    def credential(self, payload: str, reader: int | None, uid: int) -> str:
        """Return an account's credential for a reader, or for everybody."""
        words = [f"--uid={uid}", *([] if reader is None else [f"--restrict-uid={reader}"])]
        return self._run("munge", *words, text=payload)

    def of(self, uid: int) -> Callable[[str, int], str]:
        """Return what makes credentials of an account, as the client's own does."""
        return lambda payload, reader: self.credential(payload, reader, uid)

    def _run(self, program: str, *words: str, text: str) -> str:
        command = [program, f"--socket={self.socket}", *words]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()

    def put_on_path(self, path: Path) -> None:
        """Make programs munge and unmunge that ask this one."""
        path.mkdir()
        for name in ("munge", "unmunge"):
            file = path / name
            file.write_text(f'#!/bin/sh\nexec /usr/bin/{name} --socket={self.socket} "$@"\n')
            file.chmod(0o755)


@contextmanager
def running() -> Iterator[Munged]:
    """Start one; it ends with the block. Every account reaches it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with _running(Path(name)) as made:
            yield made


@contextmanager
def _running(folder: Path) -> Iterator[Munged]:
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    files = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
    words = [f"--{option}={folder / name}" for option, name in files.items()]
    process = subprocess.Popen(["munged", "--foreground", "--force", *words], stderr=subprocess.DEVNULL)
    try:
        wait(lambda: (folder / "socket").exists(), timeout_s=20)
        yield Munged(folder)
    finally:
        process.terminate()
        process.wait()
