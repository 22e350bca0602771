"""Metrics of pods: resource usage by the Summary API, /metrics/resource and /metrics/cadvisor.

All supervisors are asked concurrently; one that does not answer in time is left out.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from isthmus.clients.kube.api import Object
from isthmus.kubelet.channel import Connection
from isthmus.podproto import reports
from isthmus.podproto.frames import Channel
from isthmus.support import metrics

_ANSWER_S = 3.0
_ANSWER_BYTES = 1 << 20


class Pods(Protocol):
    """The pods with their supervisors."""

    def all(self) -> list[Object]:
        """Return all pods of this node."""

    def connection(self, uid: str) -> Connection | None:
        """Return a pod's supervisor if it is there."""


async def summary(pods: Pods, node: str) -> dict[str, Any]:
    """Return the Summary API's object (k8s.io/kubelet, stats/v1alpha1)."""
    there = [(pod, connection) for pod in pods.all() if (connection := pods.connection(pod["metadata"]["uid"]))]
    answers = await asyncio.gather(*(_ask(connection) for _, connection in there))
    listed = [_pod(pod, figures) for (pod, _), figures in zip(there, answers, strict=True) if figures]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "node": {
            "nodeName": node,
            "startTime": _START,
            "cpu": _cpu(sum(one["cpu"]["usageCoreNanoSeconds"] for one in listed)),
            "memory": _memory(sum(one["memory"]["workingSetBytes"] for one in listed)),
            "systemContainers": [
                {
                    "name": "kubelet",
                    "cpu": _cpu(int((usage.ru_utime + usage.ru_stime) * 1e9)),
                    "memory": _memory(usage.ru_maxrss * 1024),
                }
            ],
        },
        "pods": listed,
    }


def resources(found: dict[str, Any]) -> str:
    """Return a summary as Prometheus reads it (Kubernetes, "Resource metrics")."""
    containers = _Usage("container", "a container", ["container", "namespace", "pod"])
    pods, node = _Usage("pod", "a pod", ["namespace", "pod"]), _Usage("node", "all pods", [])
    for pod in found["pods"]:
        place = [pod["podRef"]["namespace"], pod["podRef"]["name"]]
        for one in pod["containers"]:
            containers.add([one["name"], *place], one)
        pods.add(place, pod)
    node.add([], found["node"])
    error = GaugeMetricFamily("scrape_error", "0: who does not answer in time is left out.", 0)
    return metrics.text(metrics.Families([*containers.families, *pods.families, *node.families, error]))


class _Usage:
    """CPU time and memory of one kind of thing."""

    def __init__(self, kind: str, whose: str, labels: list[str]) -> None:
        self._cpu = CounterMetricFamily(f"{kind}_cpu_usage_seconds", f"CPU time of {whose}.", labels=labels)
        self._memory = GaugeMetricFamily(f"{kind}_memory_working_set_bytes", f"Memory of {whose}.", labels=labels)
        self.families = (self._cpu, self._memory)

    def add(self, labels: list[str], found: dict[str, Any]) -> None:
        """Add one of them."""
        self._cpu.add_metric(labels, found["cpu"]["usageCoreNanoSeconds"] / 1e9)
        self._memory.add_metric(labels, found["memory"]["workingSetBytes"])


def cadvisor(found: dict[str, Any], pods: Iterable[Object]) -> str:
    """Return a summary's containers under cAdvisor's names and labels (cadvisor, docs/storage/prometheus.md).

    What an ordinary user cannot see, as network counters of a container, is left out.
    """
    described = {
        (pod["metadata"]["uid"], one["name"]): one
        for pod in pods
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for one in pod.get("status", {}).get(kind, ())
    }
    families = [(kind(name, what, labels=_CADVISOR_LABELS), value) for name, (kind, what, value) in _CADVISOR.items()]
    for pod in found["pods"]:
        reference = pod["podRef"]
        for one in pod["containers"]:
            status = described.get((reference["uid"], one["name"]), {})
            image, name = status.get("image", ""), status.get("containerID", "")
            labels = [one["name"], "", image, name, reference["namespace"], reference["name"]]
            for family, value in families:
                if (figure := value(one)) is not None:
                    family.add_metric(labels, figure)
    return metrics.text(metrics.Families(family for family, _ in families if family.samples))


def running(pod: Object) -> Object:
    """Return a pod as `/runningpods/` lists it: who it is, and its containers that run."""
    identity = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    listed = [
        {"name": one["name"], "image": one.get("image", ""), "resources": {}}
        for one in pod.get("status", {}).get("containerStatuses", ())
        if one.get("state", {}).get("running")
    ]
    return {"metadata": identity, "spec": {"containers": listed}, "status": {}}


async def _ask(connection: Connection) -> dict[str, Any] | None:
    stream = await connection.open({"type": "stats"})
    try:
        async with asyncio.timeout(_ANSWER_S):
            body = bytearray()
            async for item in stream:
                body += item.body if item.channel == Channel.STDOUT else b""
                if len(body) > _ANSWER_BYTES:
                    return None
        return reports.checked_figures(json.loads(body))
    except (TimeoutError, ValueError, RecursionError):
        return None
    finally:
        await stream.cancel()


def _pod(pod: Object, figures: dict[str, Any]) -> dict[str, Any]:
    identity = pod["metadata"]
    containers = [
        {
            "name": name,
            "startTime": one.get("started"),
            "cpu": _cpu(int(one.get("cpu_ns", 0))),
            "memory": _memory(int(one.get("memory_bytes", 0))),
        }
        for name, one in sorted(figures.get("containers", {}).items())
    ]
    return {
        "podRef": {key: identity[key] for key in ("name", "namespace", "uid")},
        "startTime": pod.get("status", {}).get("startTime"),
        "containers": containers,
        "cpu": _cpu(sum(one["cpu"]["usageCoreNanoSeconds"] for one in containers)),
        "memory": _memory(sum(one["memory"]["workingSetBytes"] for one in containers)),
    }


def _cpu(nanoseconds: int) -> dict[str, Any]:
    return {"time": datetime.now(UTC).isoformat(timespec="seconds"), "usageCoreNanoSeconds": nanoseconds}


def _memory(count: int) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "usageBytes": count,
        "workingSetBytes": count,
    }


def _began(one: dict[str, Any]) -> float | None:
    return datetime.fromisoformat(one["startTime"]).timestamp() if one["startTime"] else None


_CADVISOR_LABELS = ["container", "id", "image", "name", "namespace", "pod"]
_Family = type[CounterMetricFamily] | type[GaugeMetricFamily]
_CADVISOR: dict[str, tuple[_Family, str, Callable[[dict[str, Any]], float | None]]] = {
    "container_cpu_usage_seconds_total": (
        CounterMetricFamily,
        "CPU time of a container.",
        lambda one: float(one["cpu"]["usageCoreNanoSeconds"] / 1e9),
    ),
    "container_memory_usage_bytes": (
        GaugeMetricFamily,
        "Memory of a container.",
        lambda one: float(one["memory"]["usageBytes"]),
    ),
    "container_memory_working_set_bytes": (
        GaugeMetricFamily,
        "The same as container_memory_usage_bytes.",
        lambda one: float(one["memory"]["workingSetBytes"]),
    ),
    "container_start_time_seconds": (
        GaugeMetricFamily,
        "When the container started, in seconds since 1970.",
        _began,
    ),
}
_START = datetime.now(UTC).isoformat(timespec="seconds")
