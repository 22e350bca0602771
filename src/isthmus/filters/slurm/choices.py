"""A site's settings of Slurm, validated: additional files, priority weights, health check, purging."""

from __future__ import annotations

import re
from collections.abc import Mapping

from isthmus.filters.errors import InputError

# Those that slurmctld reads itself or serves to configless nodes (slurm.conf(5)).
SITE_FILES = (
    "acct_gather.conf",
    "burst_buffer.conf",
    "burst_buffer.lua",
    "cli_filter.lua",
    "helpers.conf",
    "job_container.conf",
    "job_submit.lua",
    "oci.conf",
    "scrun.lua",
    "topology.conf",
)
# Every host reads its own copy, so they are written everywhere; the network's starts with isthmus.
_FRAGMENT = re.compile(r"plugstack\.conf\.d/(?!isthmus)[a-z0-9][a-z0-9_-]*\.conf")
_WEIGHTS = {
    "age": "PriorityWeightAge",
    "assoc": "PriorityWeightAssoc",
    "fairshare": "PriorityWeightFairshare",
    "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
}
_PURGED = ("event", "job", "resv", "step", "suspend", "txn", "usage")
_SPAN = re.compile(r"[1-9][0-9]*(hours|days|months)")
_MOST_WEIGHT = 2**32 - 1
_PROGRAM = re.compile(r"/[A-Za-z0-9_./+-]+")
# slurmd ends such a program after a minute; Slurm keeps the interval in 16 bits.
_HEALTH_S = 60
_MOST_INTERVAL = 65533


def slurm_site_files(files: Mapping[str, str], *, everywhere: bool) -> list[dict[str, str]]:
    """Return entries for the module host_files; an empty content removes a file.

    Args:
        files: name in /etc/slurm -> content.
        everywhere: return those of every host, else those of the controller.

    Raises:
        InputError: a name that a site cannot set.
    """
    entries = []
    for name, content in files.items():
        fragment = bool(_FRAGMENT.fullmatch(name))
        if not fragment and name not in SITE_FILES:
            raise InputError(
                f"slurm_conf_files has {name!r}",
                f"name one of {', '.join(SITE_FILES)}, or plugstack.conf.d/NAME.conf; other files have variables",
            )
        if fragment == everywhere:
            path = f"/etc/slurm/{name}"
            whole = content if content.endswith("\n") else f"{content}\n"
            entries.append({"path": path, "content": whole} if content else {"path": path, "state": "absent"})
    return entries


def slurm_priority(weights: Mapping[str, object]) -> dict[str, object]:
    """Return settings of slurm.conf for the weights of the multifactor priority.

    Raises:
        InputError: an unknown weight, or a number that Slurm does not accept.
    """
    for name, weight in weights.items():
        if name not in _WEIGHTS:
            raise InputError(f"slurm_priority_weights has {name!r}", f"name some of {', '.join(_WEIGHTS)}")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= _MOST_WEIGHT:
            raise InputError(f"slurm_priority_weights.{name} is {weight!r}", f"give a whole number to {_MOST_WEIGHT}")
    return {_WEIGHTS[name]: weight for name, weight in weights.items()}


def slurm_health(program: str, interval_s: object) -> dict[str, object]:
    """Return settings of slurm.conf for the nodes' health check; none without a program.

    Raises:
        InputError: a program that Slurm cannot run, or an interval that it does not accept.
    """
    if not program:
        return {}
    if not isinstance(program, str) or not _PROGRAM.fullmatch(program):
        raise InputError(
            f"slurm_health_program is {program!r}", "give its absolute path, without arguments, or leave it empty"
        )
    if isinstance(interval_s, bool) or not isinstance(interval_s, int) or not _HEALTH_S <= interval_s <= _MOST_INTERVAL:
        raise InputError(
            f"slurm_health_interval_s is {interval_s!r}", f"give seconds from {_HEALTH_S} to {_MOST_INTERVAL}"
        )
    return {"HealthCheckProgram": program, "HealthCheckInterval": interval_s, "HealthCheckNodeState": "ANY,CYCLE"}


def slurm_purge(after: Mapping[str, object]) -> dict[str, object]:
    """Return settings of slurmdbd.conf for the retention of each kind of record.

    Raises:
        InputError: an unknown kind, or an invalid time.
    """
    for kind, span in after.items():
        if kind not in _PURGED:
            raise InputError(f"slurm_dbd_purge_after has {kind!r}", f"name some of {', '.join(_PURGED)}")
        if not _SPAN.fullmatch(str(span)):
            raise InputError(f"slurm_dbd_purge_after.{kind} is {span!r}", "write e.g. 24months, 60days or 12hours")
    return {f"Purge{'TXN' if kind == 'txn' else kind.capitalize()}After": span for kind, span in after.items()}
