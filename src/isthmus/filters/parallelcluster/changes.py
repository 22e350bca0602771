"""Consequences of a change of a running cluster, by which administrators plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

_LOGIN = ("LOGIN_NODES_STOP", "LOGIN_NODES_POOL_STOP", "LOGIN_NODES_POOLS")
_BOTH = "COMPUTE_AND_LOGIN_NODES_STOP"
_STRATEGY = "QUEUE_UPDATE_STRATEGY"


class Need(StrEnum):
    """What has to happen, by increasing impact."""

    LIVE = "live"
    DRAIN = "queue drain"
    LOGIN = "login nodes stop"
    FLEET = "fleet stop"
    ALL = "fleet and login nodes stop"
    NEW = "new cluster"


_ORDER = list(Need)


def need(row: Mapping[str, str]) -> Need:
    """What one change needs, of a row of the module `parallelcluster_check`."""
    policy = row["policy"]
    if row["needs"] == "refused":
        return Need.NEW
    if row["needs"] == "action":
        return Need.ALL if policy == _BOTH else Need.LOGIN if policy in _LOGIN else Need.FLEET
    # Nodes of the queue are replaced, each when its jobs have ended.
    return Need.DRAIN if policy == _STRATEGY else Need.LIVE


def plan(rows: Iterable[Mapping[str, str]]) -> dict[str, object]:
    """Return every change with its need, and the greatest of these; `need` is empty where nothing changes."""
    listed = [
        {"path": row["path"], "old": row["old"], "new": row["new"], "need": str(need(row)), "reason": row["remedy"]}
        for row in rows
    ]
    hardest = max((_ORDER.index(Need(str(each["need"]))) for each in listed), default=None)
    return {"changes": listed, "need": "" if hardest is None else str(_ORDER[hardest])}


def lines(changes: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the plan as check mode shows it."""
    return [f"{each['path']}: {each['old']} -> {each['new']} ({each['need']})" for each in changes]


def refusal(report: Mapping[str, str], stop_allowed: bool) -> str:
    """Return why a plan must not be carried out now; empty where it may."""
    if report["need"] == Need.NEW:
        return "ParallelCluster makes these in a new cluster only: undo them, or choose another cluster_name beside it"
    if report["need"] in (Need.LOGIN, Need.ALL):
        return "login nodes must be stopped first: set provider_parallelcluster_login.count: 0, run again, then this"
    if report["need"] == Need.FLEET and not stop_allowed:
        return "the compute fleet must be stopped, which ends running jobs: allow it by provider_parallelcluster_stop"
    return ""
