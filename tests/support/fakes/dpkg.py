"""Rows as dpkg-query gives them to its question (isthmus.support.modules.dpkg)."""

from __future__ import annotations


def row(
    name: str,
    version: str = "1",
    *,
    source: str = "",
    want: str = "install",
    status: str = "installed",
    architecture: str = "amd64",
) -> str:
    """Return one row with its end."""
    return "|".join((name, architecture, version, source or name, want, status)) + "\n"


def slurm(name: str, version: str, *, want: str = "install", status: str = "installed") -> str:
    """Return the row of a package of Slurm's."""
    return row(name, version, source="slurm-wlm", want=want, status=status)
