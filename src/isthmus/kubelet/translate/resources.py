"""Resource requests of a pod's job: whole CPUs, MiB, GRES.

Memory follows a container's limit, not its request: Slurm kills a job that exceeds its allocation, so a
limit above the request counts, and a container without either counts the default. CPUs follow the request.
Init containers run sequentially beside the sidecars declared before them; the others run concurrently
(Kubernetes, concepts/workloads/pods/init-containers, "Resource sharing within containers").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from isthmus.model.kubernetes.quantities import MIB, parse
from isthmus.model.pod_inputs import Object, PodSettings

_OWN = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Demand:
    """Resources of a pod's job.

    Attributes:
        cpus: whole ones.
        memory_mib: of the containers together.
        gres: Slurm's `name[:type]` -> count.
        overhead_mib: of the supervisor and of Apptainer, which are in the job beside the containers.
    """

    cpus: int
    memory_mib: int
    gres: Mapping[str, int]
    overhead_mib: int = 0

    @property
    def job_mib(self) -> int:
        """Memory of the job on each node."""
        return self.memory_mib + self.overhead_mib


def demand(pod: Object, settings: PodSettings) -> Demand:
    """Return a pod's resources, with defaults and the overhead of its runtime class."""
    spec = pod["spec"]
    needs = _pod({**_largest(spec, settings)}, spec)
    for name, quantity in (spec.get("overhead") or {}).items():
        needs[name] = needs.get(name, Fraction(0)) + parse(quantity)
    cpus = math.ceil(needs.pop("cpu", 0)) or settings.cpus
    memory_mib = math.ceil(needs.pop("memory", 0) / MIB)
    gres: Counter[str] = Counter()
    for name, count in needs.items():
        if name in settings.gres and count:
            gres[settings.gres[name]] += math.ceil(count)
    return Demand(cpus, memory_mib, gres, _overhead_mib(spec, settings))


def task_cpus(pod: Object, name: str, settings: PodSettings) -> int:
    """Return the CPUs of one task of a container that runs as several: its own, or the pod's where it is alone."""
    spec = pod["spec"]
    alone = len(spec["containers"]) == 1 and not spec.get("initContainers")
    own = next((one for one in spec["containers"] if one["name"] == name), None)
    if alone or own is None:
        return demand(pod, settings).cpus
    return math.ceil(_container(own, settings).get("cpu", 0)) or settings.cpus


def memory_limit_mib(container: Object) -> int | None:
    """Return a container's own limit, rounded up; None for none."""
    text = _part(container, "limits").get("memory")
    return None if text is None else math.ceil(parse(text) / MIB)


def unbounded_cpus(spec: Object) -> list[str]:
    """Return the containers that may use more CPU time than their limit: Slurm gives a job whole CPUs, no part of one.

    A container alone in its pod is bounded by the job, where its limit is a whole number.
    """
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    limits = {one["name"]: parse(_part(one, "limits").get("cpu", 0)) for one in containers}
    return [name for name, limit in limits.items() if limit and (len(containers) > 1 or limit.denominator != 1)]


def is_sidecar(container: Object) -> bool:
    """Return whether an init container runs on beside the others."""
    return container.get("restartPolicy") == "Always"


def extended(pod: Object) -> frozenset[str]:
    """Return the names of all resources beside CPU, memory and disk."""
    spec = pod["spec"]
    parts = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ()), spec]
    names = {name for part in parts for kind in ("requests", "limits") for name in _part(part, kind)}
    return frozenset(names - set(_OWN))


def _overhead_mib(spec: Object, settings: PodSettings) -> int:
    """Return the overhead: without it the job's cgroup would be full before a container reaches its own limit."""
    init = spec.get("initContainers") or ()
    together = len(spec["containers"]) + sum(map(is_sidecar, init))
    return settings.overhead_mib + settings.container_overhead_mib * together


def _largest(spec: Object, settings: PodSettings) -> dict[str, Fraction]:
    peaks: list[dict[str, Fraction]] = []
    sidecars: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        need = _container(container, settings)
        together = _sum([sidecars, need])
        peaks.append(together)
        if is_sidecar(container):
            sidecars = together
    peaks.append(_sum([sidecars, *(_container(one, settings) for one in spec["containers"])]))
    return {name: max(peak.get(name, Fraction(0)) for peak in peaks) for peak in peaks for name in peak}


def _container(container: Object, settings: PodSettings) -> dict[str, Fraction]:
    requests, limits = _part(container, "requests"), _part(container, "limits")
    need = {name: parse(quantity) for name, quantity in {**limits, **requests}.items()}
    return {**need, "memory": _memory(requests, limits, settings)}


def _memory(requests: Mapping[str, Any], limits: Mapping[str, Any], settings: PodSettings) -> Fraction:
    memory = [parse(part["memory"]) for part in (requests, limits) if "memory" in part]
    if not memory:
        return Fraction(settings.memory_mib * MIB)
    # Elsewhere a request bounds nothing, so many are a byte. A limit is taken at its word: were the job larger than its
    # only container, the container would have to be a step of its own.
    return max(memory) if "memory" in limits else max(*memory, Fraction(settings.least_memory_mib * MIB))


def _pod(needs: dict[str, Fraction], spec: Object) -> dict[str, Fraction]:
    """Override the sum of the containers by pod-level resources."""
    requests, limits = _part(spec, "requests"), _part(spec, "limits")
    own = {name: parse(quantity) for name, quantity in {**limits, **requests}.items() if name in _OWN}
    if "memory" in limits:
        own["memory"] = parse(limits["memory"])
    return {**needs, **own}


def _part(holder: Object, kind: str) -> Mapping[str, Any]:
    return (holder.get("resources") or {}).get(kind) or {}


def _sum(parts: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, count in part.items():
            total[name] = total.get(name, Fraction(0)) + count
    return total
