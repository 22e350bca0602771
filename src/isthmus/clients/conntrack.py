"""The kernel's connection tracking table: use, size and timeouts.

Its files come with the module, which the first rule that asks for connections loads. In a container the size is the
machine's and cannot be written: it stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/proc/sys/net/netfilter")
# Above it, `status` says so: a fifth is left.
ALARM = 0.8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Table:
    """The table of this host.

    Attributes:
        entries: how many there are.
        most: how many there can be.
    """

    entries: int
    most: int

    @property
    def problem(self) -> str:
        """What an admin should know; empty when there is room."""
        if self.entries <= ALARM * self.most:
            return ""
        return f"{self}; when it is full new connections of all fail here: raise network_conntrack_max"

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.entries} of {self.most} connections ({100 * self.entries // max(1, self.most)} %)"


def table(folder: Path = FOLDER) -> Table | None:
    """Return how full the table is; None where nothing is tracked."""
    try:
        return Table(*(int((folder / f"nf_conntrack_{name}").read_text()) for name in ("count", "max")))
    except FileNotFoundError:
        return None


def at_least(name: str, value: int, folder: Path = FOLDER) -> None:
    """Raise a setting; one that is higher stays."""
    _set(folder / f"nf_conntrack_{name}", lambda has: max(has, value))


def at_most(name: str, value: int, folder: Path = FOLDER) -> None:
    """Lower a setting; one that is lower stays."""
    _set(folder / f"nf_conntrack_{name}", lambda has: min(has, value))


def _set(file: Path, wanted: Callable[[int], int]) -> None:
    try:
        has = int(file.read_text())
        if wanted(has) != has:
            file.write_text(str(wanted(has)))
    except OSError as error:
        _log.info("%s stays as it is: %s", file.name, error.strerror)
