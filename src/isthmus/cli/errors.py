"""The one error a command ends with."""

from __future__ import annotations


class CommandError(Exception):
    """What could not be done, and the remedy; printed on standard error, exit status 1."""
