"""Paths that somebody else changes meanwhile: resolved once, by the kernel, and from then on a descriptor.

Who may write to a volume, or to a container's root, can put a link in the place of a folder at any moment, also between
a check and what follows it. So no path inside either is looked at first and used later: openat2(2) resolves it by rules
(`linux.BENEATH`: an absolute link or a `..` that leads out is an error; `linux.IN_ROOT`: it ends at the folder), and
what was found is mounted, entered or read by its descriptor. Links of /proc (`fd/3`, `root`, `cwd`) lead anywhere, so
they are never followed. Missing folders are made by the descriptor of the one they lie in.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from isthmus.supervisor.runtime import linux

# The kernel gives up where a folder is renamed just when `..` is resolved (openat2(2), EAGAIN).
_TRIES = 100


def opened(folder: int, path: str, rule: int, mode: int | None = None) -> int:
    """Return a descriptor (O_PATH) of what a path leads to below a folder.

    Args:
        folder: its descriptor.
        path: below it.
        rule: `linux.BENEATH` or `linux.IN_ROOT`.
        mode: of missing folders, which are made; None makes none.

    Raises:
        OSError: EXDEV or ELOOP: it leads out; ENOENT: it leads to nothing; ENOSYS: this kernel has no openat2.
    """
    try:
        return _opened(folder, path, rule, os.O_PATH)
    except FileNotFoundError:
        if mode is None:
            raise
    before = os.umask(0)
    try:
        return _made(folder, path, rule, mode)
    finally:
        os.umask(before)


def beginning(path: str, limit: int) -> bytes:
    """Read the beginning of a file of this process's root; what is no file that has a size reads as empty.

    Raises:
        OSError: it is not there.
    """
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        # A fifo that nobody writes to must not hold up who reads.
        found = _opened(root, path, linux.IN_ROOT, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    finally:
        os.close(root)
    with os.fdopen(found, "rb") as file:
        return file.read(limit) if stat.S_ISREG(os.fstat(found).st_mode) else b""


def enter(path: str) -> None:
    """Make a folder of this process's root the current one; it is made if it is missing and can be.

    Raises:
        OSError: it is not there, or it lies outside the root.
    """
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        found = opened(root, path, linux.IN_ROOT, 0o755)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise OSError(f'workingDir "{path}": {_why(error)}') from error
        os.chdir(path)
    else:
        os.fchdir(found)
        os.close(found)
    finally:
        os.close(root)
    if not _is_inside():
        raise OSError(f'workingDir "{path}" leads out of the container; name a folder of the image or of a volume')


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EXDEV):
        return "it leads out of the container, or round; name a folder of the image or of a volume"
    # Where nothing can be made, it is missing.
    return os.strerror(errno.ENOENT if error.errno in (None, errno.EROFS) else error.errno)


def _is_inside() -> bool:
    """Return whether the current folder can be reached from the root."""
    try:
        return os.getcwd().startswith("/")
    except FileNotFoundError:
        return False


def _opened(folder: int, path: str, rule: int, flags: int) -> int:
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            return linux.openat2(folder, path, flags, rule | linux.NO_MAGICLINKS)
    raise OSError(errno.EAGAIN, "its folders are renamed all the time")


def _made(folder: int, path: str, rule: int, mode: int) -> int:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    above = _opened(folder, ".", rule, os.O_PATH)
    for count in range(1, len(parts) + 1):
        whole = "/".join(parts[:count])
        try:
            try:
                found = _opened(folder, whole, rule, os.O_PATH)
            except FileNotFoundError:
                _make(parts[count - 1], mode, above)
                found = _opened(folder, whole, rule, os.O_PATH)
        finally:
            os.close(above)
        above = found
    return above


def _make(name: str, mode: int, above: int) -> None:
    # Somebody else was faster, or it is a link to nothing: the next attempt shows.
    with suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=above)
