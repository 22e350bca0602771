"""The deployer's secrets: random, each made once, in a file that only its owner reads.

Nothing replaces one that is there: a cluster that runs has been given it.
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
    """Those that are not there."""
    return [file for file in files if not Path(file).exists()]


def make(file: str, length: int = LENGTH) -> None:
    """Write a secret of `length` letters and digits, whole or not at all; one that is there stays.

    Raises:
        OSError: its folder cannot be made or written to.
    """
    path = Path(file)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with durable.workspace(path.parent, path.name) as folder:
        made = folder / "secret"
        durable.write(made, "".join(secrets.choice(_CHARACTERS) for _ in range(length)), 0o600)
        # Not a rename, which would replace what another run has made meanwhile.
        try:
            os.link(made, path)
        except FileExistsError:
            return
    durable.sync(path.parent)
