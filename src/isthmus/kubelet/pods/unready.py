"""A pod that cannot start yet, though nothing is wrong with its text."""

from __future__ import annotations

from isthmus.podproto.reasons import Reason


class UnreadyError(Exception):
    """The pod waits until somebody makes what it names; try again later.

    Args:
        reason: what the kubelet of Kubernetes calls it.
        message: what is missing.
        container: whose it is; empty for the whole pod's.
    """

    def __init__(self, reason: Reason, message: str, container: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.container = container
