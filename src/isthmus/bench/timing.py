"""How long a run may take, and how often one looks whether it has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isthmus.bench.launches import Launch

# Beyond a run's own limit: its job, or its pods, may have to wait for resources.
_GRACE_S = 120.0


def allowed_s(launch: Launch) -> float:
    """Return after how many seconds a run is given up."""
    return launch.minutes * 60 + _GRACE_S


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals and limits of a platform.

    Attributes:
        limit_s: of a run, from its submission to its end.
        file_s: between two looks for the file that a job leaves.
        squeue_s: between two questions to slurmctld while a job runs.
        leaves_s: the same, once the job has ended and leaves its nodes.
        objects_s: between two questions to the API server for objects that come or go.
        account_s: within which a new namespace has its service account.
        gone_s: within which the pods of a run are gone.
    """

    limit_s: Callable[[Launch], float] = allowed_s
    file_s: float = 0.02
    squeue_s: float = 5.0
    leaves_s: float = 0.1
    objects_s: float = 0.2
    account_s: float = 30.0
    gone_s: float = 120.0
