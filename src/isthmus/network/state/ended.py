"""Finds ended jobs, whose addresses can be released.

Only Slurm knows, and only an answer counts. A job holds its nodes until every epilog has returned; so a job that no
node is held for has no process left in a pod. It must be missing from two answers some seconds apart: a node that
takes its addresses before slurmctld shows the job, or a job that is requeued, is not mistaken for one that ended.
Login pods are no jobs: their own node ends them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from isthmus.network.bounds import LOGIN_FIRST

# Between the two answers, seconds.
GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Missing:
    """A job that Slurm did not name.

    Attributes:
        since_s: when it was first missed, by a clock that never goes back.
        revision: of the job's entry in etcd then; one that was written again is another stay of the job.
    """

    since_s: float
    revision: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer of Slurm's says about the jobs in etcd.

    Attributes:
        ended: job id -> revision of its entry, which the release must still find.
        missing: what to remember until the next answer.
    """

    ended: Mapping[int, int] = field(default_factory=dict)
    missing: Mapping[int, Missing] = field(default_factory=dict)


def judge(
    known: Mapping[int, int], holding: Collection[int], missing: Mapping[int, Missing], now_s: float
) -> Judgement:
    """Separate ended jobs from those that live.

    Args:
        known: jobs in etcd -> revision of the entry, read before Slurm was asked.
        holding: jobs that hold nodes, as Slurm says.
        missing: what the last judgement said to remember.
        now_s: of the same clock as the last time.
    """
    jobs = {job: revision for job, revision in known.items() if job < LOGIN_FIRST}
    absent = {job: revision for job, revision in jobs.items() if job not in holding}
    remembered = {job: _first(missing.get(job), Missing(now_s, revision)) for job, revision in absent.items()}
    ended = {job: one.revision for job, one in remembered.items() if now_s - one.since_s >= GRACE_S}
    return Judgement(ended, {job: one for job, one in remembered.items() if job not in ended})


def _first(before: Missing | None, now: Missing) -> Missing:
    return before if before is not None and before.revision == now.revision else now
