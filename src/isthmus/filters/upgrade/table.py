"""Upgrades for Ansible: the plan as plain values and as a table, and the hosts of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from isthmus.filters.upgrade.plan import Plan, Verb, plan
from isthmus.filters.upgrade.state import Wanted, observed
from isthmus.model import skew

_HEAD = ("step", "hosts", "from", "to", "what users notice")
_NOTICE = {
    Verb.ETCD: "nothing: one member after the other",
    Verb.WIDEN: "nothing",
    Verb.CONTROLLER: "sbatch, squeue and the like wait for some seconds; jobs run on",
    Verb.COMPUTE: "no new steps on a node in its seconds; jobs run on",
    Verb.LOGIN: "nothing",
    Verb.NARROW: "nothing",
    Verb.KUBERNETES: "nothing until the next `isthmus up`",
}


def upgrade_found(
    hostvars: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]]
) -> dict[str, Mapping[str, Any]]:
    """Return host -> result of module `installed_versions`, of those that answered."""
    observed = {name: hostvars[name].get("__upgrade_found", {}) for name in groups.get("all", ())}
    return {name: each for name, each in observed.items() if "slurm" in each}


def upgrade_plan(
    found: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]], wanted: Mapping[str, Any]
) -> dict[str, Any]:
    """Return steps, refusals and hosts that are left.

    Args:
        found: host -> result of module `installed_versions`, of those that answered.
        groups: Ansible's.
        wanted: fields of `Wanted`.
    """
    return _plain(plan(observed(groups, found), Wanted(**wanted)))


def _plain(made: Plan) -> dict[str, Any]:
    steps = [{**asdict(step), "verb": str(step.verb), "hosts": list(step.hosts)} for step in made.steps]
    return {"steps": steps, "refusals": list(made.refusals), "left": list(made.left)}


def upgrade_table(made: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table."""
    rows = [_HEAD, *(_row(step) for step in made["steps"])] if made["steps"] else []
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))] if rows else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [f"refused: {refusal}" for refusal in made["refusals"]]
    if made["left"]:
        lines.append(f"left for another run, as they do not answer: {NodeSet.fromlist(made['left'])}")
    return lines or ["Nothing is to be done."]


def _row(step: Mapping[str, Any]) -> tuple[str, ...]:
    hosts = str(NodeSet.fromlist(step["hosts"]))
    return step["verb"], hosts, step["before"], step["after"], _NOTICE[Verb(step["verb"])]


def upgrade_report(made: Mapping[str, Any]) -> list[str]:
    """Return the lines of a report: the steps done, and the hosts left for another run."""
    done = [f"{step['verb']} {NodeSet.fromlist(step['hosts'])}: done" for step in made["steps"]]
    left = [f"{NodeSet.fromlist(made['left'])}: left; run this again when they answer"] if made["left"] else []
    return done + left


def upgrade_hosts(made: Mapping[str, Any], verbs: str | Sequence[str]) -> list[str]:
    """Return the hosts of some steps, each once."""
    chosen = {verbs} if isinstance(verbs, str) else {*verbs}
    return list(dict.fromkeys(host for step in made["steps"] if step["verb"] in chosen for host in step["hosts"]))


def upgrade_fits(version: str, wanted: str) -> bool:
    """Return whether a version is the desired one."""
    return skew.fits(version, wanted)


def upgrade_builds_pmix(version: str) -> bool:
    """Return whether hosts of a Slurm version or its prefix get the plugin mpi/pmix from the deployer."""
    return skew.lacks_pmix(version) and skew.fits(skew.SLURM_PMIX, version)


def upgrade_mixed(version: str, controller: str) -> str:
    """Return why a node's Slurm is incompatible with its controller's; "" where it is not, or one of them has none."""
    if not version or not controller or skew.upstream(version) == skew.upstream(controller):
        return ""
    if skew.numbers(version) > skew.numbers(controller):
        return f"its Slurm {version} is newer than its controller's {controller}"
    try:
        if skew.SLURM.accepts(controller, version):
            return ""
    except skew.UnknownVersionError as error:
        return str(error)
    return f"its Slurm {version} is too old for its controller's {controller}"


def backup_part(folder: str, with_packages: bool | str) -> str:
    """Return the part of a backup with Slurm's files.

    The rollback of an upgrade prefers the files taken while the daemons were stopped.
    """
    stopped = Path(folder) / "stopped"
    wanted = str(with_packages).lower() in ("true", "yes", "1")
    return str(stopped) if wanted and stopped.is_dir() else folder


FILTERS: dict[str, Callable[..., object]] = {
    "backup_part": backup_part,
    "upgrade_builds_pmix": upgrade_builds_pmix,
    "upgrade_fits": upgrade_fits,
    "upgrade_found": upgrade_found,
    "upgrade_hosts": upgrade_hosts,
    "upgrade_mixed": upgrade_mixed,
    "upgrade_plan": upgrade_plan,
    "upgrade_report": upgrade_report,
    "upgrade_table": upgrade_table,
}
