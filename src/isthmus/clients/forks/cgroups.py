"""Cgroups below a unit's own (cgroup v2, `Delegate=yes`), each with bounds of its own."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

MOUNT = Path("/sys/fs/cgroup")
# Where the process itself goes: a cgroup with controllers for those below it holds no processes (cgroups(7)).
_OWN = "parent"


class Cgroups:
    """Those below one folder.

    Args:
        folder: the unit's.
        bounds: file -> content, of each.
    """

    def __init__(self, folder: Path, bounds: dict[str, str]) -> None:
        self._folder, self._bounds = folder, bounds

    @classmethod
    def below_own(cls, bounds: dict[str, str], mount: Path = MOUNT) -> Self:
        """Move this process one further down, so that others may be made beside it.

        Raises:
            OSError: the host has no cgroup v2, or the unit's is not delegated.
        """
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
        folder = mount / own
        if not (folder / "cgroup.controllers").exists():
            raise OSError(f"{folder} is no cgroup of version 2")
        (folder / _OWN).mkdir(exist_ok=True)
        _write(folder / _OWN / "cgroup.procs", "0")
        controllers = {file.partition(".")[0] for file in bounds}
        _write(folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(controllers)))
        return cls(folder, bounds)

    def make(self, name: str) -> int:
        """Make one; return a descriptor by which a process joins it (`join`).

        Raises:
            OSError: it could not be made.
        """
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        for file, content in self._bounds.items():
            _write(folder / file, content)
        return os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def end(self, name: str) -> None:
        """Kill all in one, and remove it once they are gone; one that is not there is fine."""
        with suppress(OSError):
            _write(self._folder / name / "cgroup.kill", "1")
        with suppress(OSError):
            (self._folder / name).rmdir()


def join(descriptor: int) -> None:
    """Move the calling process into a cgroup. Raises OSError."""
    os.write(descriptor, b"0")


def _write(file: Path, content: str) -> None:
    # Unbuffered: what the kernel says must be an error of the write.
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content.encode("ascii"))
    finally:
        os.close(descriptor)
