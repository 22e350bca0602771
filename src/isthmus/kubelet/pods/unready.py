"""A pod that cannot start yet, though nothing is wrong with its text."""

from __future__ import annotations

from enum import StrEnum


class Unready(StrEnum):
    """What the kubelet of Kubernetes calls it."""

    CONFIG = "CreateContainerConfigError"
    """A container names something that is not there: a ConfigMap, a Secret, a key; or its image forbids it."""
    MOUNT = "FailedMount"
    """A volume names something that is not there."""
    SANDBOX = "FailedCreatePodSandBox"
    """Its RuntimeClass is not there, or none of this node's."""
    SUBMIT = "FailedSubmit"
    """Slurm takes no job now."""


class UnreadyError(Exception):
    """The pod waits until somebody makes what it names; try again later.

    Args:
        reason: see Unready.
        message: what is missing.
        container: whose it is; empty for the whole pod's.
    """

    def __init__(self, reason: Unready, message: str, container: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.container = container
