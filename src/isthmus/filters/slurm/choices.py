"""A site's choices about Slurm in its own words, checked: files of the site, priorities, what accounting forgets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from isthmus.filters.errors import InputError

# Those that slurmctld reads itself or hands on to nodes without files of their own (slurm.conf(5), configless).
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
# Every host reads its own, so they are written everywhere; the network's begins with isthmus.
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
    """Entries for the module host_files; an empty content removes a file.

    Args:
        files: name in /etc/slurm -> content.
        everywhere: those that every host has, else those that the controller has.

    Raises:
        InputError: a name that is no file of a site's own.
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
    """Settings of slurm.conf for the weights of what decides which job is next.

    Raises:
        InputError: an unknown weight, or one that is no number that Slurm takes.
    """
    for name, weight in weights.items():
        if name not in _WEIGHTS:
            raise InputError(f"slurm_priority_weights has {name!r}", f"name some of {', '.join(_WEIGHTS)}")
        if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= _MOST_WEIGHT:
            raise InputError(f"slurm_priority_weights.{name} is {weight!r}", f"give a whole number to {_MOST_WEIGHT}")
    return {_WEIGHTS[name]: weight for name, weight in weights.items()}


def slurm_health(program: str, interval_s: object) -> dict[str, object]:
    """Settings of slurm.conf for the program by which nodes examine themselves; none without a program.

    Raises:
        InputError: what Slurm cannot run, or no interval that it takes.
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
    """Settings of slurmdbd.conf for how long it keeps each kind of record.

    Raises:
        InputError: an unknown kind, or what is no span of time.
    """
    for kind, span in after.items():
        if kind not in _PURGED:
            raise InputError(f"slurm_dbd_purge_after has {kind!r}", f"name some of {', '.join(_PURGED)}")
        if not _SPAN.fullmatch(str(span)):
            raise InputError(f"slurm_dbd_purge_after.{kind} is {span!r}", "write e.g. 24months, 60days or 12hours")
    return {f"Purge{'TXN' if kind == 'txn' else kind.capitalize()}After": span for kind, span in after.items()}
