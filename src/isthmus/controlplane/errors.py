"""The error tree of the control plane; each message says what is wrong and the remedy."""

from __future__ import annotations


class ControlPlaneError(Exception):
    """The control plane cannot do what it was asked for."""


class OwnedError(ControlPlaneError):
    """Another job writes this cluster's data, or might: starting beside it would destroy them."""


class UnansweredError(ControlPlaneError):
    """Slurm or the API server did not answer; nothing is known about what was asked."""
