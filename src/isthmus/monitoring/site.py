"""`isthmus doctor --site`: what is wrong with the cluster, as its controller sees it.

Three looks: at this host, at what Slurm has against its nodes, and at the alerts that fire where the site is watched.
The first two need no monitoring, and say the same when it is down.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from isthmus.clients import prometheus
from isthmus.clients.process import ProcessError, run
from isthmus.clients.prometheus import Alert
from isthmus.clients.slurm.commands import options_among
from isthmus.controlplane.doctor.findings import Finding, Level
from isthmus.monitoring import checks
from isthmus.monitoring.checks import Check

TIMEOUT_S = 30.0
# Node, state, and the reason as its author wrote it, at the end.
NODE_FORMAT = "%N|%T|%E"
WELL = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
_SIGNS = "~#!%$@^-+"
_LEVELS = {"critical": Level.FAILURE, "info": Level.OK}
_RUNBOOK = "see docs/admins/runbooks.md"


def host(found: Iterable[Check]) -> Iterator[Finding]:
    """Look at this host."""
    problems = [(check, problem) for check in found for problem in checks.problems_of(check)]
    for check, problem in problems:
        yield Finding(Level.WARNING if check.warns else Level.FAILURE, f"this host: {problem}", check.remedy)
    if not problems:
        yield Finding(Level.OK, "this host: daemons, disks, certificates and mounts are well")


def nodes(output: str) -> Iterator[Finding]:
    """Read what sinfo says of nodes, each once; a drain is an admin's will, and a warning."""
    ill: dict[str, Finding] = {}
    seen: set[str] = set()
    for line in output.splitlines():
        node, state, reason = line.split("|", 2)
        seen.add(node)
        silent = state.endswith("*")
        word = state.rstrip("*").rstrip(_SIGNS)
        if word in WELL and not silent:
            continue
        level = Level.WARNING if word in ("drained", "draining", "maint") and not silent else Level.FAILURE
        said = "does not answer" if silent else f"is {word}"
        why = "" if reason.strip() in ("", "none") else f" ({reason.strip()})"
        ill[node] = Finding(level, f"{node} {said}{why}", f"run `isthmus node check` on {node}; {_lift(node)}")
    yield from ill.values()
    if not ill:
        yield Finding(Level.OK, f"Slurm has nothing against its {len(seen)} nodes")


def _lift(node: str) -> str:
    return f"`scontrol update NodeName={node} State=RESUME` when it is well"


def alerts(found: Iterable[Alert]) -> Iterator[Finding]:
    """Show the alerts that fire."""
    shown = sorted(found, key=lambda alert: (alert.severity, alert.name, alert.summary))
    for alert in shown:
        yield Finding(
            _LEVELS.get(alert.severity, Level.WARNING),
            f"{alert.name}: {alert.summary}",
            f"{_RUNBOOK}#{alert.name.lower()}",
        )
    if not shown:
        yield Finding(Level.OK, "no alert is firing")


def examine(prefix: Path = Path("/usr"), firing: Callable[[], list[Alert]] = prometheus.firing) -> Iterator[Finding]:
    """Make all looks; one that cannot be made is a failure of its own."""
    yield from host(checks.CHECKS)
    try:
        argv = [str(prefix / "bin/sinfo"), "--all", "--noheader", "--Node", f"--format={NODE_FORMAT}"]
        yield from nodes(run(argv, timeout_s=TIMEOUT_S, without=options_among(os.environ)).stdout)
    except ProcessError as error:
        yield Finding(Level.FAILURE, f"slurmctld does not answer: {error}", "see `systemctl status slurmctld munge`")
    if not prometheus.SETTINGS.joinpath("prometheus.yml").exists():
        yield Finding(Level.WARNING, "the site is not watched", "set monitoring_enabled, run playbooks/monitoring.yml")
        return
    try:
        yield from alerts(firing())
    except (OSError, ValueError) as error:
        yield Finding(Level.FAILURE, f"Prometheus does not answer: {error}", "see `systemctl status prometheus`")
