"""Removes files of subordinate ids, which need a user namespace with these ids."""

from __future__ import annotations

import shutil
from pathlib import Path

from isthmus.clients import process

_TIMEOUT_S = 3600.0
# Root of a namespace with all subordinate ids, which is nobody outside (unshare(1)).
_INSIDE = ("unshare", "--user", "--map-root-user", "--map-auto", "--")


def remove(folder: Path) -> None:
    """Remove a folder with all that containers left in it; no link is followed, no other file system entered.

    Raises:
        ProcessError: something is still there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        process.run([*_INSIDE, "rm", "-rf", "--one-file-system", "--", folder], timeout_s=_TIMEOUT_S)
