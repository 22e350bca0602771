"""Names of jobs, which a prolog does not get: learnt from Slurm by the poll for ended jobs.

A name is kept as Slurm has it, within a bound; what becomes of it in DNS is decided in `dns`.
"""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.clients.slurm.commands import Holding
from isthmus.model.network import Job
from isthmus.network.bounds import JOB_NAME_MAX


def renamed(known: Mapping[int, Job], holding: Mapping[int, Holding]) -> dict[int, str]:
    """Return the jobs whose name is another than etcd has.

    Args:
        known: jobs in etcd.
        holding: jobs in Slurm; one of another user is a later job that got the same id.
    """
    names = {job: one.name[:JOB_NAME_MAX] for job, one in holding.items() if job in known and known[job].uid == one.uid}
    return {job: name for job, name in names.items() if known[job].name != name}
