"""A pod's conditions, by the rules of Kubernetes' kubelet (concepts/workloads/pods/pod-lifecycle, "Pod conditions").

Conditions of other owners, such as readiness gates, are preserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from isthmus.kubelet.pods.verdict import Verdict
from isthmus.kubelet.status.containers import named, write_time
from isthmus.kubelet.status.phase import Phase, any_started
from isthmus.kubelet.translate.resources import is_sidecar
from isthmus.model.pod_inputs import Object

Condition = dict[str, Any]
_UNKNOWN = "UnknownContainerStatuses"
_FINAL = {Phase.SUCCEEDED: "PodCompleted", Phase.FAILED: "PodFailed"}


def initialized(spec: Object, init: Sequence[Object], main: Sequence[Object], phase: Phase) -> Condition:
    """Return whether all init containers have completed and all sidecars started."""
    kind = "Initialized"
    wanted = spec.get("initContainers") or ()
    if wanted and not init:
        return _condition(kind, False, _UNKNOWN)
    known = named(init)
    missing = [one["name"] for one in wanted if one["name"] not in known]
    open_ = [one["name"] for one in wanted if one["name"] in known and not _through(one, known[one["name"]])]
    if phase == Phase.SUCCEEDED and not missing:
        return _condition(kind, True, _FINAL[phase])
    if any_started(main):
        return _condition(kind, True)
    message = _message((missing, "unknown"), (open_, "incomplete"))
    return _condition(kind, not message, "ContainersNotInitialized" if message else "", message)


def containers_ready(spec: Object, init: Sequence[Object], main: Sequence[Object], phase: Phase) -> Condition:
    """Return whether all containers, and all sidecars, are ready."""
    kind = "ContainersReady"
    if phase in _FINAL:
        return _condition(kind, False, _FINAL[phase])
    if not main:
        return _condition(kind, False, _UNKNOWN)
    wanted = [*(one for one in spec.get("initContainers") or () if is_sidecar(one)), *spec["containers"]]
    known = named([*init, *main])
    missing = [one["name"] for one in wanted if one["name"] not in known]
    unready = [one["name"] for one in wanted if one["name"] in known and not known[one["name"]]["ready"]]
    message = _message((missing, "unknown"), (unready, "unready"))
    return _condition(kind, not message, "ContainersNotReady" if message else "", message)


def ready(spec: Object, containers: Condition, old: Iterable[Object]) -> Condition:
    """Return whether the pod is ready for requests: its containers are ready and its readiness gates are true."""
    if containers["status"] != "True":
        return {**containers, "type": "Ready"}
    known = {one["type"]: one["status"] for one in old}
    messages = []
    for gate in spec.get("readinessGates") or ():
        name = gate["conditionType"]
        if name not in known:
            messages.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif known[name] != "True":
            messages.append(f'the status of pod readiness gate "{name}" is not "True", but {known[name]}')
    return _condition("Ready", not messages, "ReadinessGatesNotReady" if messages else "", ", ".join(messages))


def startable(begun: bool) -> Condition:
    """Return whether the pod has a job with its network, so that containers can start."""
    return _condition("PodReadyToStartContainers", begun)


def scheduled(waiting: Verdict | None) -> Condition:
    """Return whether Slurm has given the pod a node, and if not, why."""
    if waiting is None:
        return _condition("PodScheduled", True)
    return _condition("PodScheduled", False, waiting.reason, waiting.message)


def with_times(own: Sequence[Condition], pod: Object, now: datetime) -> list[Condition]:
    """Return all conditions: unchanged ones keep their transition time, those of other owners are preserved.

    Args:
        own: this kubelet's, without times.
        pod: with the conditions written last.
        now: transition time of changed conditions.
    """
    old = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    generation = pod["metadata"].get("generation")
    found = []
    for one in own:
        before = old.pop(one["type"], {})
        same = before.get("status") == one["status"] and before.get("lastTransitionTime")
        seen = {"observedGeneration": generation} if generation else {}
        found.append({**one, **seen, "lastTransitionTime": same or write_time(now)})
    return [*found, *(dict(one) for one in old.values())]


def merged(new: Iterable[Object], old: Iterable[Object]) -> list[Condition]:
    """Return conditions for a strategic merge patch, which keeps unnamed ones: outdated ones get a delete directive.

    Args:
        new: the desired conditions.
        old: those in the API server.
    """
    before = {one["type"]: one for one in old}
    words = ("reason", "message")
    return [{**{key: None for key in words if key in before.get(one["type"], {})}, **one} for one in new]


def _through(container: Object, status: Object) -> bool:
    return bool(status["started"] if is_sidecar(container) else status["ready"])


def _message(*groups: tuple[Sequence[str], str]) -> str:
    return ", ".join(f"containers with {what} status: [{' '.join(names)}]" for names, what in groups if names)


def _condition(kind: str, true: bool, reason: str = "", message: str = "") -> Condition:
    words = {key: value for key, value in (("reason", reason), ("message", message)) if value}
    return {"type": kind, "status": "True" if true else "False", **words}
