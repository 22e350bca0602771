"""The one error a command ends with."""

from __future__ import annotations


class CommandError(Exception):
    """What could not be done, and the remedy; printed on standard error.

    Args:
        words: problem and remedy.
        status: of the command.
    """

    def __init__(self, words: str, status: int = 1) -> None:
        super().__init__(words)
        self.status = status
