"""A valid pod that cannot start yet."""

from __future__ import annotations

from isthmus.podproto.reasons import Reason


class UnreadyError(Exception):
    """The pod waits for an object that it references; retry later.

    Args:
        reason: the upstream kubelet's word.
        message: what is missing.
        container: that needs it; empty for the whole pod.
    """

    def __init__(self, reason: Reason, message: str, container: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.container = container
