"""What the kernel has counted for a process's control group, of version 1 and 2."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def memory_folder(pid: int, root: Path = ROOT) -> Path | None:
    """Return the folder that holds a process's memory figures, None where it cannot be seen."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                return root / "memory" / path.lstrip("/")
            if not controllers and (root / "cgroup.controllers").exists():
                return root / path.lstrip("/")
    return None


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
