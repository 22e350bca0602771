"""Ids of this user's containers."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from isthmus.model import subids

FILES = (Path("/etc/subuid"), Path("/etc/subgid"))


def is_root_alone(files: tuple[Path, ...] = FILES) -> bool:
    """Return whether root is the only one in them: the user has no subordinate ids (subuid(5))."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    except (KeyError, OSError):
        return True
    return not all(subids.given(text, name, number) for text in texts)
