"""The module `image_prune`: archives of images that nobody uses any more, of nearly 2 GB each, leave the cache.

Each change of a package list or of the tree makes another. The archive of this run counts as used now, so that its time
is that of its last use, not of its making. Kept are those used last, as many as `newest`; those used within `recent_s`,
which another run may be reading for podman or for a disk; and those whose lock another run holds, which makes them.
What a build that was cut off left goes too. Locks stay: two runs with different files of one name would both build.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

ARGUMENTS = {
    "used": {"type": "path", "required": True},
    "newest": {"type": "int", "default": 2},
    "recent_s": {"type": "int", "default": 3600},
}
ARCHIVE = re.compile(r"(node-[0-9a-f]{16}\.tar)(\.part)?")


def unused(archives: Sequence[tuple[float, Path]], newest: int, since: float) -> list[Path]:
    """Those of (time of last use, path) that are neither among the newest nor used since then."""
    older = sorted(archives, reverse=True)[newest:]
    return [path for used, path in older if used < since]


@contextmanager
def locked(archive: Path) -> Iterator[bool]:
    """Hold an archive's lock, as a build does (flock(1)); false where another run has it."""
    with archive.with_name(f"{archive.name}.lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def remove(archive: Path) -> list[str]:
    """Remove an archive, its last step and what a build left of it; nothing while a build goes on."""
    with locked(archive) as free:
        parts = [archive.with_name(archive.name + suffix) for suffix in ("", ".part", ".customize")] if free else []
        present = [part for part in parts if part.exists()]
        for part in present:
            part.unlink()
    return [str(part) for part in present]


def find(folder: Path) -> list[tuple[float, Path]]:
    """Archives, whole or begun, and when each was last used; one that another run removes meanwhile is none."""
    found: dict[Path, float] = {}
    for path in folder.glob("node-*.tar*"):
        if match := ARCHIVE.fullmatch(path.name):
            archive = folder / match[1]
            try:
                found[archive] = max(found.get(archive, 0.0), path.stat().st_mtime)
            except FileNotFoundError:
                continue
    return [(used, archive) for archive, used in found.items()]


def main() -> None:
    """Remove, or in check mode say what would be."""
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True)
    used = Path(module.params["used"])
    if used.exists() and not module.check_mode:
        os.utime(used)
    archives = [(at, path) for at, path in find(used.parent) if path != used]
    # The used one is the newest.
    old = unused(archives, max(module.params["newest"] - 1, 0), time.time() - module.params["recent_s"])
    removed = [str(path) for path in old] if module.check_mode else [name for path in old for name in remove(path)]
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
