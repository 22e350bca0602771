"""Folders and credentials of a pull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isthmus.clients.process import StalledError, never

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a pull works.

    Attributes:
        cache: where images stay.
        scratch: where they are unpacked meanwhile: large, and best on the node's own disk.
        authfile: credentials in Docker's form; None for skopeo's own search.
        arch: the machine the image is for.
        unwanted: whether nobody waits for an image any more; the work on it then ends soon.
        root_alone: whether containers of this user know nobody but root, whose all files are then to be.
    """

    cache: Path
    scratch: Path
    authfile: Path | None
    arch: str
    unwanted: Callable[[], bool] = never
    root_alone: bool = False

    def check(self) -> None:
        """Raise where nobody wants the image any more.

        Raises:
            StalledError: so it is.
        """
        if self.unwanted():
            raise StalledError("pull", None, "is not wanted any more")
