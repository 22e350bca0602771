"""The error of a command."""

from __future__ import annotations


class CommandError(Exception):
    """A failure and its remedy; printed on standard error.

    Args:
        words: problem and remedy.
        status: of the command.
    """

    def __init__(self, words: str, status: int = 1) -> None:
        super().__init__(words)
        self.status = status
