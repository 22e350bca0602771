"""Resource usage of each container, summed over its processes: an unprivileged user has no cgroup per container."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from isthmus.supervisor import clock
from isthmus.supervisor.containers.container import Runner
from isthmus.supervisor.runtime import namespaces

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def collect(containers: list[Runner]) -> dict[str, Any]:
    """Return {time, containers: {name: {cpu_ns, memory_bytes, started}}} of those that run."""
    found: dict[str, Any] = {}
    for container in containers:
        if container.sandbox is not None:
            usages = [usage(pid) for pid in namespaces.members(container.sandbox.mounts)]
            found[container.name] = {
                "cpu_ns": sum(cpu for cpu, _ in usages),
                "memory_bytes": sum(memory for _, memory in usages),
                "started": container.since,
            }
    return {"time": clock.now(), "containers": found}


def usage(pid: int) -> tuple[int, int]:
    """Return CPU time in ns, with that of children that have ended, and memory of its own in bytes; 0 if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The name may contain anything; the numbers follow its last parenthesis (proc_pid_stat(5)).
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = file.read().split()
        return sum(map(int, fields[11:15])) * _TICK_NS, (int(resident) - int(shared)) * _PAGE
    return 0, 0
