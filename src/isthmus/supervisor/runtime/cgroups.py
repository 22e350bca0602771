"""Memory events of a process's control group, of version 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def memory_folder(pid: int, proc: Path = PROC) -> Path | None:
    """Return the folder that holds a process's memory figures, None where it cannot be seen."""
    with suppress(OSError):
        paths = dict(_paths((proc / str(pid) / "cgroup").read_text(encoding="ascii")))
        for version, root, point in _mounts((proc / "self/mountinfo").read_text(encoding="utf-8")):
            # Where both versions are, memory belongs to one of them: the first that names it.
            path = paths.get(version) if version == min(paths, default=0) else None
            # A node that is a container itself has mounted its own part of the tree alone.
            if path is not None and (path == root or path.startswith(f"{root.rstrip('/')}/")):
                return Path(point, path[len(root) :].lstrip("/"))
    return None


def _paths(text: str) -> Iterator[tuple[int, str]]:
    """Give the paths of a process in the trees of both versions (cgroups(7))."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield 1, path
        elif not controllers:
            yield 2, path


def _mounts(text: str) -> Iterator[tuple[int, str, str]]:
    """Give version, root and place of each mounted tree that has memory figures (proc_pid_mountinfo(5))."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, point, *_ = before.split()
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup" and "memory" in options.split(","):
            yield 1, root, point
        elif kind == "cgroup2":
            yield 2, root, point


def oom_kills(folder: Path | None) -> int:
    """Return how many processes the kernel killed there for want of memory; also those below count."""
    if folder is None:
        return 0
    for name in ("memory.events", "memory.oom_control"):
        with suppress(OSError):
            for line in (folder / name).read_text(encoding="ascii").splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value)
    return 0


class OomKills:
    """Processes that the kernel kills in a folder from now on.

    Args:
        folder: with the memory figures; None where they cannot be seen.

    Attributes:
        total: how many there were at the last look.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._before = folder, oom_kills(folder)
        self.total = 0

    def more(self) -> int:
        """Look again, and return how many were killed since the last look."""
        known, self.total = self.total, max(oom_kills(self._folder) - self._before, self.total)
        return self.total - known
