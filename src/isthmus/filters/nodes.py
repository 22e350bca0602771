"""Decisions of the day-2 playbooks: which nodes are selected, and whose drain a node has.

Slurm keeps one reason for each node. The reason of these playbooks starts with `isthmus: `, and only drains with such a
reason are ever replaced or lifted; those of others are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from ClusterShell.NodeSet import NodeSet, NodeSetException

from isthmus.filters.errors import InputError

OWNER = "isthmus: "
# Flags that sinfo appends to a state: not responding, rebooting, powered down ...
STATE_FLAGS = "*~#!%$@^-+"


class NodeState(TypedDict):
    """One node as sinfo prints it."""

    state: str
    reason: str


class DrainPlan(TypedDict):
    """Nodes to change, and nodes to leave alone, each with its present reason."""

    change: list[str]
    keep: dict[str, str]


def nodes_selected(wanted: str | Iterable[str], known: Iterable[str], where: str = "group compute") -> list[str]:
    """Expand `c[1-3],c7`; refuse names that are not in the inventory's group compute."""
    known = list(known)
    try:
        names = list(NodeSet(wanted if isinstance(wanted, str) else ",".join(wanted)))
    except NodeSetException as error:
        raise InputError(f"nodes: {wanted!r} is no list of nodes", "write e.g. -e nodes=c[3-4],c7") from error
    if not names:
        raise InputError("no nodes are named", f"add -e nodes=NAMES; {where}: {_fold(known)}")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            f"{_fold(unknown)}: not in the inventory's {where}",
            f"name some of {_fold(known)}, or add the host to the inventory first",
        )
    return names


def nodes_pattern(wanted: str | Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the hosts of a play: as `nodes_selected`, but none without names, so that it can be parsed."""
    return nodes_selected(wanted, known) if wanted else []


def nodes_added(wanted: str | Iterable[str], groups: Mapping[str, list[str]], required: bool = False) -> list[str]:
    """Return the compute and login nodes that are added; none without names, unless some are required."""
    if not wanted and not required:
        return []
    known = dict.fromkeys([*groups.get("compute", []), *groups.get("login", [])])
    return nodes_selected(wanted, known, "groups compute and login")


def nodes_remaining(selected: Iterable[str], compute: Iterable[str], controller: str) -> list[str]:
    """Return the remaining compute nodes; the controller and the last node cannot be removed."""
    selected = set(selected)
    remaining = [name for name in compute if name not in selected]
    if controller in selected:
        raise InputError(f"{controller} is the controller", "remove other nodes; `make teardown` removes a test bed")
    if not remaining:
        raise InputError("no compute node would remain", "keep at least one; playbooks/drain.yml stops new jobs")
    return remaining


def nodes_partitions(
    partitions: Iterable[Mapping[str, Any]], groups: Mapping[str, list[str]], removed: Iterable[str]
) -> list[dict[str, Any]]:
    """Return each partition with its remaining nodes, by name; none may become empty."""
    removed = set(removed)
    if not removed:
        return [dict(partition) for partition in partitions]
    smaller = []
    for partition in partitions:
        names = [name for item in partition["nodes"] for name in groups.get(item) or NodeSet(item)]
        left = [name for name in dict.fromkeys(names) if name not in removed]
        if not left:
            raise InputError(
                f"partition {partition['name']} would have no node left",
                "take it out of slurm_partitions first, or give it other nodes",
            )
        smaller.append({**partition, "nodes": left})
    return smaller


def nodes_drain_reason(text: str, admin: str) -> str:
    """Return a drain's reason with its prefix and author, on one line."""
    words = " ".join(text.split())
    if not words:
        raise InputError("a drain needs a reason", "add -e 'drain_reason=why'")
    return f"{OWNER}{admin}: {words}"


def nodes_states(sinfo: str) -> dict[str, NodeState]:
    """Parse `sinfo -N -h -o '%N|%T|%E'`; a node in several partitions has several equal lines."""
    states: dict[str, NodeState] = {}
    for line in filter(None, sinfo.splitlines()):
        name, state, reason = line.split("|", 2)
        states[name] = {"state": state.rstrip(STATE_FLAGS), "reason": "" if reason == "none" else reason}
    return states


def nodes_drain_plan(states: dict[str, NodeState], selected: Iterable[str], reason: str) -> DrainPlan:
    """Plan a drain: nodes that are not drained, and own drains with another reason; drains of others are kept."""
    plan: DrainPlan = {"change": [], "keep": {}}
    for name in selected:
        state = _state(states, name)
        if _drained(state) and (state["reason"] == reason or not _ours(state)):
            plan["keep"][name] = state["reason"]
        else:
            plan["change"].append(name)
    return plan


def nodes_resume_plan(states: dict[str, NodeState], selected: Iterable[str]) -> DrainPlan:
    """Plan to lift own drains; a drain of somebody else refuses the whole run."""
    plan: DrainPlan = {"change": [], "keep": {}}
    foreign = {}
    for name in selected:
        state = _state(states, name)
        if not _drained(state):
            plan["keep"][name] = state["state"]
        elif _ours(state):
            plan["change"].append(name)
        else:
            foreign[name] = state["reason"]
    if foreign:
        raise InputError(
            "drained by somebody else: " + ", ".join(f"{name} ({reason})" for name, reason in foreign.items()),
            "ask them, or lift it by hand: scontrol update NodeName=... State=RESUME",
        )
    return plan


def _state(states: dict[str, NodeState], name: str) -> NodeState:
    if name not in states:
        raise InputError(f"Slurm has no node {name}", "run playbooks/add_nodes.yml for it first")
    return states[name]


def _drained(state: NodeState) -> bool:
    return state["state"].startswith("drain")


def _ours(state: NodeState) -> bool:
    return state["reason"].startswith(OWNER)


def _fold(names: Iterable[str]) -> str:
    return str(NodeSet.fromlist(list(names)))


FILTERS: dict[str, Callable[..., object]] = {
    "nodes_added": nodes_added,
    "nodes_drain_plan": nodes_drain_plan,
    "nodes_drain_reason": nodes_drain_reason,
    "nodes_partitions": nodes_partitions,
    "nodes_pattern": nodes_pattern,
    "nodes_remaining": nodes_remaining,
    "nodes_resume_plan": nodes_resume_plan,
    "nodes_selected": nodes_selected,
    "nodes_states": nodes_states,
}
