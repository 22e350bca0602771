"""Polling interval of jobsd; pure."""

from __future__ import annotations

from collections.abc import Iterable

# Between two questions for jobs, from one beginning to the next: at least, also while many wait.
LEAST_S = 1.0
# Slurm works for us at most so much of the time: a slurmctld that takes a second is asked every five.
SHARE = 0.2
# The longest interval for any subscriber: a repeated view is a sign of life.
MOST_S = 300.0
# After the first failure, and at most after many: a slurmctld that is back is soon seen.
FAILED_S, FAILED_MOST_S = 2.0, 10.0
# Between two questions for nodes, as kubelets have it (`isthmus.kubelet.slurm.pace.OFFER_S`).
NODES_S = 30.0


def jobs_s(wanted_s: Iterable[float], took_s: float, failures: int) -> float:
    """Return the time from the beginning of one question to that of the next.

    Args:
        wanted_s: how old each kubelet's view may become; 0 for one that waits for an answer.
        took_s: for how long Slurm worked on the last answer; what fails is waited for, not worked on.
        failures: questions since the last answer.
    """
    wanted = min([MOST_S, *wanted_s])
    after_failure = min(FAILED_S * 2 ** min(failures - 1, 10), FAILED_MOST_S) if failures else 0.0
    return max(LEAST_S, took_s / SHARE, wanted, after_failure)


def nodes_s(took_s: float) -> float:
    """Return the time from the beginning of one question for nodes to that of the next."""
    return max(NODES_S, took_s / SHARE)
