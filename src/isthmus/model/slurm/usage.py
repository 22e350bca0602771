"""What pods, namespaces and accounts used: jobs of Slurm's accounting, summed up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from isthmus.model.pod_job import accounted_pod

# Parentheses are in no name of Kubernetes.
CONTROL_PLANE, OTHER = "(control plane)", "(other jobs)"


class By(StrEnum):
    """What jobs are summed up by."""

    POD = "pod"
    NAMESPACE = "namespace"
    ACCOUNT = "account"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Used:
    """What one job had and used.

    Attributes:
        id: Slurm's; each array task and each heterogeneous component has its own.
        user: whose it was.
        account: who pays.
        name: of the job, any text.
        extra: of sbatch's --extra, any text; empty where Slurm does not keep it.
        elapsed_s: how long it ran.
        cpu_s: of processors it had, each for as long as it ran.
        used_s: of processor time its ended steps used.
        memory_mib: it had.
        gpus: it had.
    """

    id: str
    user: str
    account: str
    name: str
    extra: str
    elapsed_s: int
    cpu_s: int
    used_s: float
    memory_mib: float
    gpus: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What the jobs of one key had and used.

    Attributes:
        key: a pod as namespace/name, a namespace, an account or a user.
        jobs: how many.
        cpu_hours: of processors they had.
        used_cpu_hours: of processor time that their ended steps used.
        memory_gib_hours: they had.
        gpu_hours: they had.
    """

    key: str
    jobs: int
    cpu_hours: float
    used_cpu_hours: float
    memory_gib_hours: float
    gpu_hours: float


def summed(records: Iterable[Used], by: By, control_plane: str) -> list[Usage]:
    """Sum up jobs, those with the most processor hours first.

    Args:
        records: the jobs; of several users, namespaces of one name are one.
        by: what they are summed up by.
        control_plane: name of the jobs that users' control planes are.
    """
    groups: dict[str, list[Used]] = {}
    for record in records:
        groups.setdefault(_key(record, by, control_plane), []).append(record)
    found = [_usage(key, group) for key, group in groups.items()]
    return sorted(found, key=lambda each: (-each.cpu_hours, each.key))


def _key(record: Used, by: By, control_plane: str) -> str:
    if by is By.ACCOUNT:
        return record.account
    if by is By.USER:
        return record.user
    pod = accounted_pod(record.extra)
    if pod is None:
        return CONTROL_PLANE if record.name == control_plane else OTHER
    return "/".join(pod) if by is By.POD else pod[0]


def _usage(key: str, group: list[Used]) -> Usage:
    return Usage(
        key=key,
        jobs=len(group),
        cpu_hours=sum(each.cpu_s for each in group) / 3600,
        used_cpu_hours=sum(each.used_s for each in group) / 3600,
        memory_gib_hours=sum(each.memory_mib * each.elapsed_s for each in group) / 1024 / 3600,
        gpu_hours=sum(each.gpus * each.elapsed_s for each in group) / 3600,
    )
