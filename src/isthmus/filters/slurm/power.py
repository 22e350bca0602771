"""Power saving: settings of slurm.conf for nodes that Slurm starts when jobs wait and stops when they are idle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.nodes import slurm_expand, slurm_fold
from isthmus.filters.suggest import check_keys, unknown

# Variables slurm_cloud_* -> the key, and its minimum: a node boots and joins, a server is deleted.
_NUMBERS = {
    "suspend_time_s": ("SuspendTime", 60),
    "suspend_timeout_s": ("SuspendTimeout", 10),
    "resume_timeout_s": ("ResumeTimeout", 60),
    "resume_rate": ("ResumeRate", 1),
    "suspend_rate": ("SuspendRate", 1),
}
_PROGRAMS = {"ResumeProgram": "resume", "SuspendProgram": "suspend", "ResumeFailProgram": "fail"}
_MOST = 65533


def slurm_cloud(
    items: Iterable[str], groups: Mapping[str, Sequence[str]], joining: Collection[str], removed: Collection[str] = ()
) -> list[str]:
    """Return the nodes of slurm_cloud_nodes.

    Args:
        items: groups, hosts or ranges such as `burst[1-4]`.
        groups: Ansible's `groups`.
        joining: hosts that no playbook visits.
        removed: nodes to leave out.

    Raises:
        InputError: an unknown name, or a node that playbooks visit.
    """
    names: list[str] = []
    for item in items:
        for name in groups[item] if item in groups else slurm_expand(item) if "[" in item else [item]:
            if name not in joining:
                known = {*joining, *(group for group, hosts in groups.items() if hosts and {*hosts} <= {*joining})}
                raise unknown("node or group of group joining in slurm_cloud_nodes", name, known)
            names.append(name)
    return [name for name in dict.fromkeys(names) if name not in removed]


def slurm_power(
    cloud: Sequence[str], compute: Sequence[str], prefix: str, numbers: Mapping[str, object]
) -> dict[str, object]:
    """Return settings of slurm.conf for nodes that are started and stopped; none without such nodes.

    Args:
        cloud: their names.
        compute: names of the other compute nodes.
        prefix: of the programs.
        numbers: suspend_time_s, suspend_timeout_s and resume_timeout_s; resume_rate and suspend_rate in nodes a minute.

    Raises:
        InputError: a number that Slurm does not accept, or a timeout in which no node can start.
    """
    check_keys("slurm_cloud_*", numbers, _NUMBERS)
    found: dict[str, object] = {}
    for name, value in numbers.items():
        key, least = _NUMBERS[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
            raise InputError(f"slurm_cloud_{name} is {value!r}", f"give a whole number from {least} to {_MOST}")
        found[key] = value
    if not cloud:
        return {}
    programs = {key: f"{prefix}/bin/isthmus-cloud-{name}" for key, name in _PROGRAMS.items()}
    return {**found, **programs, **({"SuspendExcNodes": slurm_fold(compute)} if compute else {})}
