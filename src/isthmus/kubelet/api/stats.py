"""Figures: what the pods use (Summary API, /metrics/resource) and what the kubelet itself does (/metrics).

Each pod's supervisor is asked at the same moment; one that does not answer in time is left out.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from isthmus.clients.kube.api import Object
from isthmus.kubelet.channel import Connection
from isthmus.podproto import reports
from isthmus.podproto.frames import Channel

_ANSWER_S = 3.0
_ANSWER_BYTES = 1 << 20
# What happened since the start, by name; each is a counter of /metrics.
COUNTS: Counter[str] = Counter()


class Pods(Protocol):
    """Who can be asked."""

    def all(self) -> list[Object]:
        """Return all pods of this node."""

    def connection(self, uid: str) -> Connection | None:
        """Return a pod's supervisor if it is there."""


async def summary(pods: Pods, node: str) -> dict[str, Any]:
    """Return the Summary API's object (k8s.io/kubelet, stats/v1alpha1)."""
    there = [(pod, connection) for pod in pods.all() if (connection := pods.connection(pod["metadata"]["uid"]))]
    told = await asyncio.gather(*(_ask(connection) for _, connection in there))
    listed = [_pod(pod, figures) for (pod, _), figures in zip(there, told, strict=True) if figures]
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
    lines: list[str] = []
    for pod in found["pods"]:
        reference = pod["podRef"]
        place = f'namespace="{reference["namespace"]}",pod="{reference["name"]}"'
        for one in pod["containers"]:
            lines += _figures("container", one, f'container="{one["name"]}",{place}')
        lines += _figures("pod", pod, place)
    lines += _figures("node", found["node"], "")
    return "\n".join(["# TYPE container_cpu_usage_seconds_total counter", *lines, "scrape_error 0", ""])


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
    rows: dict[str, list[str]] = {name: [] for name in _CADVISOR}
    for pod in found["pods"]:
        reference = pod["podRef"]
        for one in pod["containers"]:
            status = described.get((reference["uid"], one["name"]), {})
            place = {"namespace": reference["namespace"], "pod": reference["name"], "container": one["name"]}
            labels = _labels(
                {**place, "id": "", "image": status.get("image", ""), "name": status.get("containerID", "")}
            )
            for name, (_, value) in _CADVISOR.items():
                if (told := value(one)) is not None:
                    rows[name].append(f"{name}{labels} {told}")
    kinds = {name: f"# TYPE {name} {kind}" for name, (kind, _) in _CADVISOR.items()}
    return "\n".join([line for name, lines in rows.items() if lines for line in (kinds[name], *lines)] + [""])


def running(pod: Object) -> Object:
    """Return a pod as `/runningpods/` lists it: who it is, and its containers that run."""
    identity = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    listed = [
        {"name": one["name"], "image": one.get("image", ""), "resources": {}}
        for one in pod.get("status", {}).get("containerStatuses", ())
        if one.get("state", {}).get("running")
    ]
    return {"metadata": identity, "spec": {"containers": listed}, "status": {}}


def own(pods: Iterable[Object]) -> str:
    """Return the kubelet's own figures as Prometheus reads them."""
    phases = Counter(pod.get("status", {}).get("phase", "Unknown") for pod in pods)
    lines = [f'isthmus_kubelet_pods{{phase="{phase}"}} {count}' for phase, count in sorted(phases.items())]
    lines += [f"isthmus_kubelet_{name}_total {count}" for name, count in sorted(COUNTS.items())]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    lines.append(f"process_cpu_seconds_total {usage.ru_utime + usage.ru_stime:.3f}")
    lines.append(f"process_max_resident_memory_bytes {usage.ru_maxrss * 1024}")
    lines.append(f"process_uptime_seconds {time.monotonic() - _MONOTONIC:.0f}")
    return "\n".join([*lines, ""])


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


def _began(one: dict[str, Any]) -> str | None:
    return f"{datetime.fromisoformat(one['startTime']).timestamp():.0f}" if one["startTime"] else None


_CADVISOR: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "container_cpu_usage_seconds_total": ("counter", lambda one: f"{one['cpu']['usageCoreNanoSeconds'] / 1e9:.3f}"),
    "container_memory_usage_bytes": ("gauge", lambda one: one["memory"]["usageBytes"]),
    "container_memory_working_set_bytes": ("gauge", lambda one: one["memory"]["workingSetBytes"]),
    "container_start_time_seconds": ("gauge", _began),
}


def _labels(found: dict[str, str]) -> str:
    """Return labels, escaped as the exposition format asks (Prometheus, text format 0.0.4)."""
    escaped = {key: value.translate(_ESCAPED) for key, value in found.items()}
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}"


_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def _figures(kind: str, found: dict[str, Any], labels: str) -> Iterator[str]:
    text = f"{{{labels}}}" if labels else ""
    yield f"{kind}_cpu_usage_seconds_total{text} {found['cpu']['usageCoreNanoSeconds'] / 1e9:.3f}"
    yield f"{kind}_memory_working_set_bytes{text} {found['memory']['workingSetBytes']}"


_START = datetime.now(UTC).isoformat(timespec="seconds")
_MONOTONIC = time.monotonic()
