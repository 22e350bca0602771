"""The error tree of the control plane; each message names the problem and the remedy."""

from __future__ import annotations


class ControlPlaneError(Exception):
    """A command or the control plane failed."""


class OwnedError(ControlPlaneError):
    """Another job writes this cluster's data, or may: a second writer would corrupt them."""


class UnansweredError(ControlPlaneError):
    """Slurm or the API server did not answer; the result is unknown."""
