"""The last known good hardware of compute nodes, which the controller keeps in a file.

A node that is down keeps its line in nodes.conf, so that a change of the configuration does not wait for it. A node
with less than before has lost something: a memory module, a processor. It is refused by name, and its line is kept, so
that Slurm drains it too; a lower figure is only recorded when an administrator accepts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Facts that slurm_hardware reads.
FACTS = ("processor_vcpus", "processor_count", "processor_cores", "processor_threads_per_core", "memtotal_mb")
# The kernel's own memory varies by version, which is no change of the hardware.
SAME_MEMORY_SHARE = 0.02

Facts = Mapping[str, Any]


def slurm_recorded(
    names: Iterable[str], hostvars: Mapping[str, Facts], record: Mapping[str, Facts], accepted: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return the updated record; nodes that the inventory declares, or no longer has, are not in it.

    Args:
        names: compute nodes.
        hostvars: Ansible's; facts of nodes that were reached, and `slurm_node`.
        record: the present one.
        accepted: nodes that may have less than before.
    """
    accepted = set(accepted)
    kept = {name: _kept(hostvars[name], record.get(name, {}), name in accepted) for name in names}
    return {name: facts for name, facts in kept.items() if facts}


def slurm_shrunk(facts: Facts, declared: Mapping[str, Any], recorded: Facts) -> str:
    """Return what a node has lost since it was recorded, "" for nothing; declared hardware is not compared."""
    found = _of(facts)
    if not found or not recorded:
        return ""
    cpus = "processor_vcpus"
    if "cpus" not in declared and found.get(cpus, 0) < recorded.get(cpus, 0):
        return f"has {found.get(cpus, 0)} CPUs and had {recorded[cpus]}"
    had, has = recorded["memtotal_mb"], found["memtotal_mb"]
    if "memory_mib" not in declared and has < had * (1 - SAME_MEMORY_SHARE):
        return f"has {has} MiB of memory and had {had}"
    return ""


def slurm_declared(node: Mapping[str, Any]) -> bool:
    """Return whether the inventory declares all that Slurm needs of a node."""
    return {"cpus", "memory_mib"} <= set(node)


def _kept(variables: Facts, recorded: Facts, accepted: bool) -> dict[str, Any]:
    declared = variables.get("slurm_node", {})
    if slurm_declared(declared):
        return {}
    found = _of(variables.get("ansible_facts", {}))
    if not found or (not accepted and slurm_shrunk(found, declared, recorded)):
        return dict(recorded)
    return dict(recorded) if _same(found, recorded) else found


def _same(found: Facts, recorded: Facts) -> bool:
    if not recorded:
        return False
    differ = {key for key in FACTS if found.get(key) != recorded.get(key)}
    memory = abs(found["memtotal_mb"] - recorded["memtotal_mb"]) <= recorded["memtotal_mb"] * SAME_MEMORY_SHARE
    return memory and differ <= {"memtotal_mb"}


def _of(facts: Facts) -> dict[str, Any]:
    """Return the facts to record, none without the memory."""
    return {key: facts[key] for key in FACTS if key in facts} if facts.get("memtotal_mb") else {}
