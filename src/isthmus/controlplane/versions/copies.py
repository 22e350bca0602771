"""The copy of etcd's data from before a move, beside them: made while nobody writes, and put back by two renames."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from isthmus.support import durable

_COPY = "etcd-before"
_PART = ".etcd-before-"
_AWAY = ".etcd-away-"
_BLOCK_BYTES = 1 << 20
# Space that etcd has allocated for its next log; it makes another one.
_UNUSED = ".tmp"


def exists(data: Path) -> bool:
    """Return whether there is a whole copy."""
    return _copy(data).is_dir()


def make(data: Path) -> None:
    """Copy data; under its name the copy is whole and on the disk.

    Raises:
        OSError: there is no room for it, or the disk fails; then nothing of it stays.
    """
    remove(data)
    part = data.with_name(_PART + token_hex(8))
    try:
        _tree(data, part)
        durable.move(part, _copy(data))
    finally:
        shutil.rmtree(part, ignore_errors=True)


def put_back(data: Path) -> None:
    """Replace data by their copy; may be repeated after a death at any moment."""
    if exists(data):
        with suppress(FileNotFoundError):
            durable.move(data, data.with_name(_AWAY + token_hex(8)))
        durable.move(_copy(data), data)
    clean(data)


def clean(data: Path) -> None:
    """Remove what is half made or was replaced."""
    for prefix in (_PART, _AWAY):
        for folder in data.parent.glob(f"{prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)


def remove(data: Path) -> None:
    """Remove the copy."""
    copy = _copy(data)
    if copy.is_dir():
        # Under another name first: what is left by a death on the way is no copy.
        away = data.with_name(_AWAY + token_hex(8))
        copy.rename(away)
    clean(data)


def _copy(data: Path) -> Path:
    return data.with_name(_COPY)


def _tree(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for entry in os.scandir(source):
        place = target / entry.name
        if entry.is_dir(follow_symlinks=False):
            _tree(Path(entry.path), place)
        elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(_UNUSED):
            _file(Path(entry.path), place)
    durable.sync(target)


def _file(source: Path, target: Path) -> None:
    """Copy a file without the zeros that etcd has allocated ahead."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as written, source.open("rb") as read:
        while block := read.read(_BLOCK_BYTES):
            if block.strip(b"\0"):
                written.write(block)
            else:
                written.seek(len(block), os.SEEK_CUR)
        written.truncate()
        written.flush()
        os.fsync(written.fileno())
