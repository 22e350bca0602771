"""Layers of images as tar files, written by Python's tarfile."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_TYPES = {
    "file": tarfile.REGTYPE,
    "folder": tarfile.DIRTYPE,
    "link": tarfile.SYMTYPE,
    "hard": tarfile.LNKTYPE,
    "fifo": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
}


def entry(name: str, kind: str = "file", value: str = "", **header: Any) -> tuple[tarfile.TarInfo, bytes]:
    """Return an entry: `value` is a file's text, or where a link leads; `header` its mode, uid and the like."""
    info = tarfile.TarInfo(name)
    info.type, info.mode = _TYPES[kind], 0o755 if kind == "folder" else 0o644
    content = value.encode() if kind == "file" else b""
    if kind in ("link", "hard"):
        info.linkname = value
    info.size = len(content)
    for key, each in header.items():
        setattr(info, key, each)
    return info, content


def write(path: Path, entries: Iterable[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.PAX_FORMAT) -> Path:
    """Write a layer."""
    with tarfile.open(path, "w", format=form) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return path
