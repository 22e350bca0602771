"""A pod's phase, from the states of its containers (concepts/workloads/pods/pod-lifecycle, "Pod phase").

Failed and Succeeded are final. Init containers keep the pod Pending until they complete; sidecars count as
running while they run, and are ignored once they ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

from isthmus.kubelet.status.containers import named, state_of
from isthmus.kubelet.translate.resources import is_sidecar
from isthmus.model.pod_inputs import Object


class Phase(StrEnum):
    """Kubernetes' phases without Unknown, which kubelets no longer set."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def final(self) -> bool:
        """Whether the pod will never run again."""
        return self in (Phase.SUCCEEDED, Phase.FAILED)


def phase(spec: Object, init: Sequence[Object], main: Sequence[Object], final: bool) -> Phase:
    """Return a pod's phase.

    Args:
        spec: of the pod.
        init: statuses of its init containers and sidecars.
        main: statuses of its containers.
        final: no container will be started, whatever the restart policy.
    """
    policy = spec.get("restartPolicy") or "Always"
    begun = any_started(main)
    counts = _init(spec, named(init)) + _main(spec, named(main))
    if counts["init failed"] and (policy == "Never" or (final and not begun)):
        return Phase.FAILED
    if counts["init pending"] or (counts["sidecar pending"] and not begun) or counts["waiting"]:
        return Phase.FAILED if final else Phase.PENDING
    if counts["unknown"]:
        return Phase.PENDING
    if counts["running"]:
        return Phase.RUNNING
    return _stopped(counts, policy, final) if counts["stopped"] else Phase.PENDING


def any_started(main: Sequence[Object]) -> bool:
    """Return whether any container has run, so that the pod is initialized."""
    return any(state_of(one)[0] != "waiting" or one.get("lastState") for one in main)


def _stopped(counts: Mapping[str, int], policy: str, final: bool) -> Phase:
    well = counts["stopped"] == counts["succeeded"]
    if final:
        return Phase.SUCCEEDED if well else Phase.FAILED
    # A container that waits after an end will be restarted: by the policy, or with a new image regardless of it.
    if policy == "Always" or counts["again"]:
        return Phase.RUNNING
    if well:
        return Phase.SUCCEEDED
    return Phase.FAILED if policy == "Never" else Phase.RUNNING


def _init(spec: Object, known: Mapping[str, Object]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        status = known.get(container["name"])
        if is_sidecar(container):
            counts.update(_sidecar(status))
            continue
        state, fields = state_of(status or {})
        last = ((status or {}).get("lastState") or {}).get("terminated")
        if state == "waiting" and last:
            # Between two attempts; only a failed one has a last state.
            counts["init failed"] += last["exitCode"] != 0
        elif state == "terminated":
            counts["init failed"] += fields["exitCode"] != 0
        else:
            counts["init pending"] += 1
    return counts


def _sidecar(status: Object | None) -> list[str]:
    if status is None:
        return ["unknown"]
    state, _ = state_of(status)
    if state == "running":
        return ["running"] if status.get("started") else ["running", "sidecar pending"]
    fresh = state == "waiting" and not (status.get("lastState") or {}).get("terminated")
    return ["waiting", "sidecar pending"] if fresh else []


def _main(spec: Object, known: Mapping[str, Object]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for container in spec["containers"]:
        status = known.get(container["name"])
        if status is None:
            counts["unknown"] += 1
            continue
        state, fields = state_of(status)
        if state == "waiting" and (status.get("lastState") or {}).get("terminated"):
            counts.update(("stopped", "again"))
        elif state == "waiting":
            counts["waiting"] += 1
        elif state == "terminated":
            counts["stopped"] += 1
            counts["succeeded"] += fields["exitCode"] == 0
        else:
            counts["running"] += 1
    return counts
