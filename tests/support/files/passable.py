"""Folders of pytest that ordinary users may pass, for tests that act as one of them."""

from __future__ import annotations

import tempfile
from pathlib import Path


def passable(folder: Path) -> Path:
    """Let everybody pass a folder of pytest's and those above it, which are closed; /tmp is not pytest's."""
    top = Path(tempfile.gettempdir()).resolve()
    for each in (folder, *folder.parents):
        # One process of several has a folder of its own among them.
        if each == top or not each.is_relative_to(top):
            return folder
        each.chmod(0o755)
    return folder
