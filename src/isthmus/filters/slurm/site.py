"""Slurm's configuration from the inventory: hosts with their hardware, users with their account; adoption."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isthmus.filters.errors import InputError
from isthmus.filters.slurm.nodes import slurm_hardware
from isthmus.filters.slurm.record import slurm_declared

# Configless operation, sackd and reconfiguration without restarts: Slurm's release notes for 23.11.
OLDEST = (23, 11)
# The QOS that slurmdbd creates.
_NORMAL = "normal"

Hosts = Mapping[str, Mapping[str, Any]]


def slurm_compute(names: Iterable[str], hostvars: Hosts, record: Hosts | None = None) -> list[dict[str, Any]]:
    """Return name, address and hardware of each compute node.

    Args:
        names: hosts of the group compute.
        hostvars: Ansible's; `base_address` of each is needed, `slurm_node` and facts are used.
        record: of `slurm_recorded`, which overrides facts.

    Raises:
        InputError: a node's hardware is neither declared nor known from facts; names the node.
    """
    record = record or {}
    return [
        {"name": name, "address": str(hostvars[name]["base_address"]), **_known(name, hostvars[name], record.get(name))}
        for name in names
    ]


def _known(name: str, variables: Mapping[str, Any], recorded: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        return slurm_hardware(recorded or variables.get("ansible_facts", {}), variables.get("slurm_node", {}))
    except InputError as error:
        raise InputError(
            f"{name}: {error.problem}; no slurm.conf is written without it",
            f"start {name}, declare its slurm_node (cpus, memory_mib), or take it out of the inventory",
        ) from error


def slurm_undeclared(names: Iterable[str], hostvars: Hosts, record: Hosts | None = None) -> list[str]:
    """Return the nodes whose facts are needed, since neither the inventory nor the record has their hardware."""
    return [
        name
        for name in names
        if not slurm_declared(hostvars[name].get("slurm_node", {}))
        and name not in (record or {})
        and "memtotal_mb" not in hostvars[name].get("ansible_facts", {})
    ]


def slurm_fair_memory(hosts: Sequence[Mapping[str, Any]]) -> int:
    """Return the MiB per CPU with which a job can use every CPU of any node: the least memory_mib / cpus."""
    return int(min(host["memory_mib"] // host["cpus"] for host in hosts))


def slurm_users_of(users: Iterable[Mapping[str, Any]], account: str) -> list[dict[str, str]]:
    """Return the users of base_users as entries of slurm_users, in one account."""
    return [{"name": user["name"], "account": account, "state": user.get("state", "present")} for user in users]


def slurm_qos_bounded(qos: Sequence[Mapping[str, Any]], jobs_max: int) -> list[dict[str, Any]]:
    """Return the QOS with a limit of submitted jobs in Slurm's default QOS.

    Args:
        qos: entries of slurm_qos; one of that name may have another bound.
        jobs_max: of a user; 0 leaves it as it is.
    """
    found = [dict(each) for each in qos]
    if not jobs_max:
        return found
    normal = next((each for each in found if str(each["name"]).lower() == _NORMAL), None)
    if normal is None:
        normal = {"name": _NORMAL}
        found.append(normal)
    normal["limits"] = {"MaxSubmitJobsPerUser": jobs_max, **(normal.get("limits") or {})}
    return found


def slurm_missing(need: Mapping[str, str]) -> str:
    """Return the problem of a file that an adopted Slurm lacks."""
    return f"{need['path']} is missing; {need['remedy']}"


def slurm_adopt_problems(answers: Sequence[str], conf_dir: str) -> list[str]:
    """Return what prevents later layers from using an existing Slurm.

    Args:
        answers: output of `scontrol --version` and of `scontrol show config`.
        conf_dir: the folder of slurm.conf, for the remedies.

    Returns:
        One line per problem, each with its remedy; empty when the Slurm can be used.
    """
    release, config = answers
    version = re.search(r"(\d+)\.(\d+)", release)
    problems = []
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        problems.append(f"Slurm is {release.strip()!r}; upgrade it to {OLDEST[0]}.{OLDEST[1]} or later")
    settings = {key: value for key, value in re.findall(r"^(\w+)(?:\[0\])?\s*=\s*(.*?)\s*$", config, re.MULTILINE)}
    flags = settings.get("PrologFlags", "").lower().split(",")
    if "contain" not in flags and "alloc" not in flags:
        problems.append(
            f"PrologFlags is {settings.get('PrologFlags')}; set PrologFlags=Contain in {conf_dir}/slurm.conf"
        )
    if settings.get("Prolog", "(null)") == "(null)":
        problems.append(f"there is no Prolog; set Prolog={conf_dir}/prolog.d/* in {conf_dir}/slurm.conf")
    if settings.get("PlugStackConfig", "(null)") == "(null)":
        problems.append(f"there is no PlugStackConfig; set it to {conf_dir}/plugstack.conf in {conf_dir}/slurm.conf")
    return problems
