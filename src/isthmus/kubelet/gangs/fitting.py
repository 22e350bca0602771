"""Whether all jobs of a gang fit into the free resources of the nodes at once; pure.

A need is the request on one node: a job of several nodes has several. CPUs and memory are compared; everything else a
job may ask for (GRES, features) is decided by Slurm after the submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isthmus.model.slurm.cluster import NodeRoom

_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


@dataclass(frozen=True, slots=True)
class Need:
    """A job's request on one node."""

    cpus: int
    memory_mib: int


def needs(options: Iterable[str]) -> list[Need]:
    """Return a job's request on each of its nodes, from its sbatch options."""
    asked = dict(word.removeprefix("--").partition("=")[::2] for word in options)
    nodes = _count(asked.get("nodes"))
    each = _count(asked.get("ntasks-per-node"))
    tasks = max(_count(asked.get("ntasks")), nodes * each)
    cpus = _count(asked.get("cpus-per-task")) * max(tasks // nodes, 1)
    memory = asked.get("mem")
    mib = _mib(memory) if memory else _mib(asked.get("mem-per-cpu") or "0") * cpus
    return [Need(cpus, mib)] * nodes


def never(wanted: Sequence[Need], nodes: Sequence[NodeRoom]) -> str:
    """Return why the requests can never be met together, even on idle nodes; empty if they can."""
    for what, has, unit in (("cpus", "all_cpus", "CPUs"), ("memory_mib", "all_memory_mib", "MiB")):
        asked = [getattr(need, what) for need in wanted]
        there = [getattr(node, has) for node in nodes]
        if max(asked) > max(there, default=0):
            return f"one of its pods needs {max(asked)} {unit} of a node, and the largest has {max(there, default=0)}"
        if sum(asked) > sum(there):
            return f"its pods need {sum(asked)} {unit} together, and all nodes have {sum(there)}"
    large = [need for need in wanted if 2 * need.cpus > max(node.all_cpus for node in nodes)]
    if len(large) > len(nodes):
        return f"{len(large)} of its pods need more than half of a node each, and there are {len(nodes)} nodes"
    return ""


def fits(wanted: Sequence[Need], nodes: Sequence[NodeRoom]) -> bool:
    """Return whether the needs can be met at once with what is free: the largest first, each where least stays free."""
    free = [[node.cpus, node.memory_mib] for node in nodes]
    for need in sorted(wanted, key=lambda one: (one.cpus, one.memory_mib), reverse=True):
        places = [room for room in free if room[0] >= need.cpus and room[1] >= need.memory_mib]
        if not places:
            return False
        taken = min(places, key=lambda room: room[0])
        taken[0] -= need.cpus
        taken[1] -= need.memory_mib
    return True


def _count(text: str | None) -> int:
    """Return a number of sbatch's; of a range the least."""
    first = (text or "1").partition("-")[0]
    return max(int(first), 1) if first.isdecimal() else 1


def _mib(text: str) -> int:
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "M")
    return round(int(number) * _UNITS.get(unit, 1)) if number.isdecimal() else 0
