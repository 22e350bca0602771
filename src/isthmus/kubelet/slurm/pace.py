"""How often Slurm is asked; pure. Many kubelets share one slurmctld, and each alone must not be noticed there.

What changed a moment ago changes again soon, what has been the same for an hour hardly does: a pause is an eighth of
the time since the last change, within bounds. So what Slurm alone knows is seen late by an eighth of the time that it
took to come. Supervisors report what happens in their pods, and the end of a connection has Slurm asked at once, so a
job whose supervisor is there needs Slurm hardly ever.

A hundred kubelets whose pods are quiet ask together less than once a second: 0.3 squeue, 0.3 sinfo, 0.3 sacctmgr.
"""

from __future__ import annotations

# Between two rounds of jobs: soon while something is expected to change, else so that Slurm hardly notices.
BUSY_S = 1.0
IDLE_S = 5.0
BUSY_FOR_S = 20.0
# At most: with each supervisor connected, and where a job has none yet, or none any more.
ATTENDED_S, ALONE_S = 300.0, 60.0
# Between two looks at nodes, partitions and limits: at least, and at most.
OFFER_S, OFFER_MOST_S = 30.0, 360.0
_PART = 8.0
# Where isthmus-jobsd asks for all: a kubelet asks Slurm itself for what that cannot say, so often at most.
CONFIRM_S = 20.0
OFFER_RENEWED_S, OFFER_FED_S = 60.0, 900.0
# By chance a pause is longer by so much of it at most: kubelets that began together drift apart.
SPREAD = 0.2


def jobs_s(quiet_s: float, busy_s: float = BUSY_S, *, attended: bool) -> float:
    """Return the pause until the next round of jobs.

    Args:
        quiet_s: since anything changed, or was expected to.
        busy_s: the pause while something changes.
        attended: each job has its supervisor connected.
    """
    if quiet_s < BUSY_FOR_S:
        return busy_s
    return max(busy_s, IDLE_S, min(quiet_s / _PART, ATTENDED_S if attended else ALONE_S))


def offer_s(quiet_s: float) -> float:
    """Return the pause until the next look at what Slurm offers.

    Args:
        quiet_s: since that changed, or anything of the pods.
    """
    return max(OFFER_S, min(quiet_s / _PART, OFFER_MOST_S))
