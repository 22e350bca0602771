"""The deployer's secrets: random, each generated once, in a file of mode 0600.

An existing secret is never replaced: a live cluster uses it.
"""

from __future__ import annotations

import os
import secrets
import string
from collections.abc import Iterable
from pathlib import Path

from isthmus.support import durable

LENGTH = 40
_CHARACTERS = string.ascii_letters + string.digits


def lacking(files: Iterable[str]) -> list[str]:
    """Return the missing ones."""
    return [file for file in files if not Path(file).exists()]


def make(file: str, length: int = LENGTH) -> None:
    """Write a secret of `length` letters and digits atomically, unless it exists.

    Raises:
        OSError: its folder cannot be made or written to.
    """
    path = Path(file)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with durable.workspace(path.parent, path.name) as folder:
        made = folder / "secret"
        durable.write(made, "".join(secrets.choice(_CHARACTERS) for _ in range(length)), 0o600)
        # Not a rename, which would replace the secret of a concurrent run.
        try:
            os.link(made, path)
        except FileExistsError:
            return
    durable.sync(path.parent)
