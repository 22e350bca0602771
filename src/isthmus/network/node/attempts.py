"""The steps of one pass over a node: a failed one is reported and does not affect the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

Arguments = ParamSpec("Arguments")

_log = logging.getLogger(__name__)


class Attempts:
    """What a pass tries.

    Args:
        failures: the errors that a step may end with; others are nobody's plan, and end the pass.

    Attributes:
        errors: subject -> why it is not as wanted.
    """

    def __init__(self, *failures: type[Exception]) -> None:
        self._failures = failures
        self.errors: dict[str, str] = {}

    def make(
        self, subject: str, step: Callable[Arguments, object], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> bool:
        """Do a step; return whether it was done."""
        try:
            step(*args, **kwargs)
        except self._failures as error:
            _log.warning("%s: %s", subject, error)
            self.errors[subject] = str(error)
            return False
        return True
