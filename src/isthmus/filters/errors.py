"""The one error a filter raises: what is wrong with the input, and the remedy."""

from __future__ import annotations


class InputError(ValueError):
    """Bad input; Ansible prints the message as the reason of the failed task."""

    def __init__(self, problem: str, remedy: str) -> None:
        """Join both halves: nobody should read one without the other."""
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy
