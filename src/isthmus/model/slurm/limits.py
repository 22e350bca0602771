"""Limits of sacctmgr: of QOS and of associations, and what each counts."""

from __future__ import annotations

from enum import StrEnum


class LimitKind(StrEnum):
    """How a limit is written."""

    TRES = "tres"
    """`cpu=8,mem=4G`, each part for itself."""
    TIME = "time"
    """A Slurm time, kept in whole minutes."""
    COUNT = "count"
    """A whole number, or -1 for none."""
    NUMBER = "number"
    """A whole number that is never unset."""


_GROUP = {
    "GrpTRES": LimitKind.TRES,
    "GrpTRESMins": LimitKind.TRES,
    "GrpTRESRunMins": LimitKind.TRES,
    "GrpJobs": LimitKind.COUNT,
    "GrpSubmitJobs": LimitKind.COUNT,
    "GrpWall": LimitKind.TIME,
    "MaxWall": LimitKind.TIME,
    "MaxTRESPerNode": LimitKind.TRES,
}
QOS_LIMITS = {
    **_GROUP,
    "MaxTRESPerJob": LimitKind.TRES,
    "MaxTRESMinsPerJob": LimitKind.TRES,
    "MinTRESPerJob": LimitKind.TRES,
    "MaxTRESPerUser": LimitKind.TRES,
    "MaxJobsPerUser": LimitKind.COUNT,
    "MaxSubmitJobsPerUser": LimitKind.COUNT,
    "MaxTRESPerAccount": LimitKind.TRES,
    "MaxJobsPerAccount": LimitKind.COUNT,
    "MaxSubmitJobsPerAccount": LimitKind.COUNT,
}
ASSOCIATION_LIMITS = {
    **_GROUP,
    "MaxTRESPerJob": LimitKind.TRES,
    "MaxTRESMinsPerJob": LimitKind.TRES,
    "MaxJobs": LimitKind.COUNT,
    "MaxSubmitJobs": LimitKind.COUNT,
    "Fairshare": LimitKind.NUMBER,
}
