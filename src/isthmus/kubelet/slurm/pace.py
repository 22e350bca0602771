"""Polling intervals; pure. Many kubelets share one slurmctld, and the load of each must be negligible.

A recent change predicts another; a state that is an hour old rarely changes: the interval is an eighth of
the time since the last change, within bounds. A change that only Slurm knows is thus seen late by an eighth of the time
before it. Supervisors report changes in their pods, and a lost connection triggers a poll at once, so a
job with a connected supervisor hardly needs polling.

A hundred idle kubelets together make less than one query a second: 0.3 squeue, 0.3 sinfo, 0.3 sacctmgr.
"""

from __future__ import annotations

# Between two polls of jobs: short while a change is expected, else long.
BUSY_S = 1.0
IDLE_S = 5.0
BUSY_FOR_S = 20.0
# At most: with each supervisor connected, and where a job has none yet, or none any more.
ATTENDED_S, ALONE_S = 300.0, 60.0
# Between two polls of nodes, partitions and limits: at least, and at most.
OFFER_S, OFFER_MOST_S = 30.0, 360.0
_PART = 8.0
# With isthmus-jobsd: how often at most a kubelet polls Slurm for what the daemon does not send.
CONFIRM_S = 20.0
OFFER_RENEWED_S, OFFER_FED_S = 60.0, 900.0
# Jitter: the largest random part added to an interval, which spreads kubelets that started together.
SPREAD = 0.2


def jobs_s(quiet_s: float, busy_s: float = BUSY_S, *, attended: bool) -> float:
    """Return the interval until the next poll of jobs.

    Args:
        quiet_s: since anything changed, or was expected to.
        busy_s: the pause while something changes.
        attended: each job has its supervisor connected.
    """
    if quiet_s < BUSY_FOR_S:
        return busy_s
    return max(busy_s, IDLE_S, min(quiet_s / _PART, ATTENDED_S if attended else ALONE_S))


def offer_s(quiet_s: float) -> float:
    """Return the interval until the next poll of nodes, partitions and limits.

    Args:
        quiet_s: since that changed, or anything of the pods.
    """
    return max(OFFER_S, min(quiet_s / _PART, OFFER_MOST_S))
