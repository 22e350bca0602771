"""Settings of Slurm that ParallelCluster reserves, and the others in its form.

The lists are those of ParallelCluster 3.16 (docs/admins/parallelcluster.md); tests compare them with the package, so
that a site is refused before the package itself is there to be asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.conf import conf_key, conf_value, slurm_settings


class Level(StrEnum):
    """Where a setting stands; the value is ParallelCluster's word."""

    CLUSTER = "SlurmConf"
    QUEUE = "Queue"
    RESOURCE = "ComputeResource"


_SCALING = "ParallelCluster starts and stops nodes by it; see provider_parallelcluster_idle_min and _timeout_s"
_NAMES = "it follows from slurm_partitions and provider_parallelcluster_kinds"
_LOGS = "ParallelCluster collects these logs; leave it out"
_ACCOUNTING = "use provider_parallelcluster_database"
_FIXED = "ParallelCluster needs its own value; leave it out"
_PROLOG = "put a script into /opt/slurm/etc/scripts/{}.d, which every node shares"

DENIED: Mapping[Level, Mapping[str, str]] = {
    Level.CLUSTER: {
        "epilog": _PROLOG.format("epilog"),
        "grestypes": "it follows from the instance types; leave it out",
        "launchparameters": _FIXED,
        "prolog": _PROLOG.format("prolog"),
        "reconfigflags": _FIXED,
        "resumefailprogram": _SCALING,
        "resumeprogram": _SCALING,
        "resumetimeout": _SCALING,
        "slurmctldhost": _FIXED,
        "slurmctldlogfile": _LOGS,
        "slurmctldparameters": _FIXED,
        "slurmdlogfile": _LOGS,
        "slurmuser": _FIXED,
        "suspendexcnodes": _SCALING,
        "suspendprogram": _SCALING,
        "suspendtime": _SCALING,
        "taskplugin": _FIXED,
        "treewidth": _FIXED,
    },
    Level.QUEUE: {
        "nodes": _NAMES,
        "partitionname": _NAMES,
        "resumetimeout": _SCALING,
        "state": "ParallelCluster sets it when it stops the fleet; use scontrol update on the head node",
        "suspendtime": _SCALING,
        "oversubscribe": _FIXED,
    },
    Level.RESOURCE: {
        "cpus": "it follows from the instance type; leave it out",
        "gres": "it follows from the instance type; leave it out",
        "nodeaddr": _NAMES,
        "nodehostname": _NAMES,
        "nodename": _NAMES,
        "state": "use scontrol update on the head node",
        "weight": "set the kind's weight, a setting of its own",
    },
}
DENIED_WITH_DATABASE: Mapping[str, str] = {
    "accountingstoragetype": _ACCOUNTING,
    "accountingstoragehost": _ACCOUNTING,
    "accountingstorageport": _ACCOUNTING,
    "accountingstorageuser": _ACCOUNTING,
    "jobacctgathertype": _ACCOUNTING,
}
# A pod network must be there before a job's first step; the plugin stands in a folder that every node shares.
NEEDED: Mapping[str, object] = {
    "PrologFlags": "Alloc,Contain",
    "PlugStackConfig": "/opt/slurm/etc/plugstack.conf",
}


def refusals(level: Level, settings: Mapping[str, object], *, database: bool = False) -> list[InputError]:
    """Return an error for each setting that ParallelCluster refuses."""
    denied = {**DENIED[level], **(DENIED_WITH_DATABASE if database and level is Level.CLUSTER else {})}
    found = []
    for key, value in settings.items():
        if key.lower() in denied:
            found.append(InputError(f"ParallelCluster refuses {key} of Slurm", denied[key.lower()]))
            continue
        try:
            conf_value(conf_key(key), value)
        except InputError as error:
            found.append(error)
    return found


def custom(settings: Mapping[str, object]) -> list[dict[str, str]]:
    """Return settings as ParallelCluster's CustomSlurmSettings."""
    return [{conf_key(key): conf_value(key, value)} for key, value in settings.items()]


def of_cluster(extra: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of slurm.conf: Isthmus' own, overridden by the site's."""
    return slurm_settings(NEEDED, extra)
