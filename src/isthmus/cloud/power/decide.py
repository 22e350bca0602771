"""Decisions about cloud nodes, from Slurm's node states and the cloud's servers. Pure.

slurmctld may call again, twice concurrently, or be restarted between its decision and the call. So no decision depends
on earlier calls: a start is in progress while a token of the node is valid, and a server of an older start, which can
no longer join, is replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from isthmus.cloud.plan import FAILED
from isthmus.model.cloud import Found

# Prefix of the reason in Slurm for nodes that this program took out of service.
PREFIX = "isthmus: cloud: "


class Start(StrEnum):
    """The action of a start for a node's server."""

    CREATE = "create"
    REPLACE = "replace"
    KEEP = "keep"


class Flag(StrEnum):
    """Flags of a node's state, as `scontrol show node` writes them."""

    DOWN = "DOWN"
    POWERING_UP = "POWERING_UP"
    POWERED_DOWN = "POWERED_DOWN"
    POWERING_DOWN = "POWERING_DOWN"
    POWER_UP = "POWER_UP"
    POWER_DOWN = "POWER_DOWN"


_AWAY = frozenset(Flag)


@dataclass(frozen=True)
class Repairs:
    """Differences between Slurm and the cloud.

    Attributes:
        start: nodes that Slurm waits for, whose start was interrupted.
        stop: nodes with servers that are not needed, each with the reason.
        down: nodes that cannot be used, each with the reason.
    """

    start: list[str] = field(default_factory=list)
    stop: dict[str, str] = field(default_factory=dict)
    down: dict[str, str] = field(default_factory=dict)


def start(names: Iterable[str], servers: Mapping[str, Found], starting: Collection[str]) -> dict[str, Start]:
    """Decide for each node that Slurm resumes.

    Args:
        names: of nodes.
        servers: node -> its server.
        starting: nodes whose start is in progress.
    """
    return {name: _start(servers.get(name), name in starting) for name in names}


def _start(server: Found | None, under_way: bool) -> Start:
    if server is None:
        return Start.CREATE
    return Start.KEEP if under_way and server.status.upper() not in FAILED else Start.REPLACE


def repairs(nodes: Mapping[str, tuple[Collection[str], str]], servers: Mapping[str, Found]) -> Repairs:
    """Compare Slurm's node states with the servers in the cloud.

    Args:
        nodes: node -> flags of its state, and its reason in Slurm.
        servers: node -> its server.
    """
    found = Repairs()
    for name, (flags, reason) in nodes.items():
        server = servers.get(name)
        if server is None:
            if Flag.POWERING_UP in flags and Flag.DOWN not in flags:
                found.start.append(name)
            elif not _AWAY & set(flags):
                found.down[name] = "its server is gone"
        elif is_given_up(flags, reason):
            found.stop[name] = "it was given up"
        elif Flag.POWERING_UP in flags:
            if server.status.upper() in FAILED:
                found.down[name] = str(server.settings.get("fault") or f"its server is in state {server.status}")
                found.stop[name] = "it failed"
        elif Flag.POWERED_DOWN in flags and Flag.POWER_UP not in flags:
            found.stop[name] = "Slurm has powered it down"
    return found


def is_given_up(flags: Collection[str], reason: str) -> bool:
    """Return whether this program took a node out of service; Slurm keeps the reason after the node is back."""
    return Flag.DOWN in flags and reason.startswith(PREFIX)


def is_there(flags: Collection[str]) -> bool:
    """Return whether Slurm considers a node to be running, so that it is still to be powered down."""
    return not (_AWAY - {Flag.DOWN}) & set(flags)
