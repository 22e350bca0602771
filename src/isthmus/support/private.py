"""The user's private folder, ~/.isthmus: checks of its owner and mode, and the umask of its writers.

Keys lie there, and programs that are given its path follow no link: a link, a pipe or another's folder in its place is
refused before anything changes. Below it nothing is open to others by construction: each program that writes there has
umask 077, so that also a folder which is made on the way to another is closed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UMASK = 0o077
# Of ~/.isthmus; code that works in one of the other folders checks first.
PARTS = ("", "cluster", "cluster/logs", "cluster/pki", "pods")


class PrivateError(Exception):
    """Something else is where the user's own folder belongs; the message has the remedy."""


@contextmanager
def umask() -> Iterator[int]:
    """Let all that is made meanwhile be the user's alone; give the umask of before."""
    before = os.umask(UMASK)
    try:
        yield before
    finally:
        os.umask(before)


def check(folder: Path) -> None:
    """Look at a user's ~/.isthmus, which need not be there, and close what is open to others.

    Raises:
        PrivateError: it is a link, no folder, or another's.
    """
    for path in (folder / part if part else folder for part in PARTS):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise PrivateError(f"{path} cannot be looked at ({error.strerror}); it must be yours") from error
        if why := _why(found):
            raise PrivateError(f"{path} {why}; move it away, and Isthmus makes a folder that is yours alone")
        if found.st_mode & UMASK:
            # A home that cannot be written to just now may be read all the same.
            with suppress(OSError):
                path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)


def _why(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "is a link, which is not followed"
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    return f"belongs to the user with uid {found.st_uid}, not to you" if found.st_uid != os.geteuid() else ""
