"""Computes a pod's status from its supervisor's report and the state of its Slurm job.

    report (states of containers) + job (whether anything can run) -> containers -> phase -> conditions

While the job is pending there are no container statuses, as with a pod that is not scheduled: the reason is
Slurm's. Before the submission containers wait for images and references.
A final status is never changed: later news from Slurm neither revives a pod nor turns success into failure. So where
Slurm ended the job (scancel, time limit, preemption), the phase waits for Slurm's word: programs end well on SIGTERM.
Equal inputs give equal statuses, times included, so an unchanged status is not published again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from isthmus.kubelet.pods import verdict
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.pods.verdict import Verdict
from isthmus.kubelet.status import conditions
from isthmus.kubelet.status.containers import last_finish, statuses, write_time
from isthmus.kubelet.status.phase import Phase, any_started, phase
from isthmus.model.pod_inputs import ImageState, Object
from isthmus.model.pod_job import SlurmJob
from isthmus.podproto.reasons import Reason

Status = dict[str, Any]
_KEPT = ("qosClass", "nominatedNodeName", "resourceClaimStatuses", "resize")
_KINDS = {
    "initContainers": "initContainerStatuses",
    "containers": "containerStatuses",
    "ephemeralContainers": "ephemeralContainerStatuses",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """Summary of a pod's observed state.

    Attributes:
        waiting: why it has no nodes yet.
        over: why nothing runs any longer.
        final: nothing runs any longer.
        end: when the job, or the last container, ended; else now.
        undecided: Slurm's SIGTERM came, and its reason is not known yet.
    """

    waiting: Verdict | None
    over: Verdict | None
    final: bool
    end: datetime
    undecided: bool = False


def pod_status(
    pod: Object, report: Object | None, slurm_job: SlurmJob | None, images: Mapping[str, ImageState], now: datetime
) -> Status:
    """Return v1.PodStatus as JSON.

    Args:
        pod: with the status written last, whose times are kept.
        report: the supervisor's last; None before its first.
        slurm_job: its observed state; None before the job is submitted.
        images: name of a container -> state of its image.
        now: with a time zone.
    """
    seen = _seen(pod, report, slurm_job, now)
    lists: dict[str, list[Status]] = {kind: [] for kind in _KINDS}
    if seen.waiting in (None, verdict.NOT_SUBMITTED):
        over = seen.over or (verdict.LOST if seen.final else None)
        lists = {kind: statuses(pod, kind, report, images, over, seen.end) for kind in _KINDS}
    found = _phase(pod, lists, seen)
    cause = seen.over if seen.over and found != Phase.SUCCEEDED else seen.waiting or _error(report)
    cause = None if cause is verdict.NOT_SUBMITTED else cause
    return {
        **_base(pod, now),
        "phase": found.value,
        **({"reason": cause.reason, "message": cause.message} if cause else {}),
        "conditions": _conditions(pod, report, lists, found, seen, now),
        **_addresses(report),
        **{field: lists[kind] for kind, field in _KINDS.items() if lists[kind]},
    }


def renewed(new: Object, old: Object) -> Status:
    """Return lists of addresses for a strategic merge patch, which otherwise adds to what is there.

    Args:
        new: the desired status.
        old: that in the API server.
    """
    lists = [key for key in ("podIPs", "hostIPs") if new.get(key) and old.get(key) not in (None, new[key])]
    return {key: [{"$patch": "replace"}, *new[key]] for key in lists}


def refused(pod: Object, problems: Sequence[str], now: datetime, reason: str = Reason.UNSUPPORTED) -> Status:
    """Return the status of a refused pod, for which no job is ever submitted.

    Args:
        pod: the pod.
        problems: of admission, or sbatch's error.
        now: with a time zone.
        reason: one word.
    """
    refusal = Verdict(reason, "; ".join(problems), True)
    return {
        **_base(pod, now),
        "phase": Phase.FAILED.value,
        "reason": refusal.reason,
        "message": refusal.message,
        "conditions": conditions.with_times([conditions.scheduled(refusal)], pod, now),
    }


def unready(pod: Object, error: UnreadyError, images: Mapping[str, ImageState], now: datetime) -> Status:
    """Return the status of a pod that waits for an image or a referenced object.

    Args:
        pod: the pod.
        error: what is missing.
        images: name of a container -> state of its image.
        now: with a time zone.
    """
    whose = [error.container] if error.container else []
    failed = {name: ImageState(error.reason, error.message, images.get(name, ImageState()).id) for name in whose}
    status = pod_status(pod, None, None, {**images, **failed}, now)
    return status if whose else held(status, error.reason, error.message)


def held(status: Status, reason: Reason, message: str) -> Status:
    """Return the status of a pod that waits as a whole: `kubectl get` shows the reason of its containers."""
    words = {"reason": reason.value, "message": message}
    waits = [{"waiting": {"reason": word}} for word in (Reason.CREATING, Reason.INITIALIZING)]
    lists = {
        field: [{**one, "state": {"waiting": words}} if one["state"] in waits else one for one in status[field]]
        for field in _KINDS.values()
        if field in status
    }
    return {**status, **lists, **words}


def _seen(pod: Object, report: Object | None, job: SlurmJob | None, now: datetime) -> _Seen:
    reported_end = (report or {}).get("phase") == "ended"
    finish = last_finish(report) if reported_end else None
    broken = _error(report) if reported_end else None
    sigterm = bool((report or {}).get("sigterm"))
    if job is None:
        return _Seen(None if report else verdict.NOT_SUBMITTED, broken, reported_end, finish or now, sigterm)
    if job.state.waiting and report is None:
        return _Seen(verdict.waiting(job), None, False, now)
    end = finish or (job.ended if job.state.ended else None) or now
    over = verdict.ended(pod, report, job) if job.state.ended else None
    over = over or broken
    final = reported_end or job.state.ended
    late = verdict.overdue(pod, job, end)
    if late and (over is None or over.failed):
        # Containers that are being stopped still run.
        over = late if final else Verdict(late.reason, late.message)
    return _Seen(None, over, final, end, sigterm and not job.state.ended)


def _phase(pod: Object, lists: Mapping[str, Sequence[Object]], seen: _Seen) -> Phase:
    old = (pod.get("status") or {}).get("phase")
    if old in (Phase.SUCCEEDED, Phase.FAILED):
        return Phase(old)
    if seen.over and seen.over.failed:
        return Phase.FAILED
    found = phase(pod["spec"], lists["initContainers"], lists["containers"], seen.final)
    if found.final and seen.undecided and not pod["metadata"].get("deletionTimestamp"):
        return Phase.RUNNING if any_started(lists["containers"]) else Phase.PENDING
    return found


def _conditions(
    pod: Object,
    report: Object | None,
    lists: Mapping[str, Sequence[Object]],
    found: Phase,
    seen: _Seen,
    now: datetime,
) -> list[dict[str, Any]]:
    spec, init, main = pod["spec"], lists["initContainers"], lists["containers"]
    all_ready = conditions.containers_ready(spec, init, main, found)
    own = [
        conditions.startable(report is not None and not seen.final and not report.get("error")),
        conditions.initialized(spec, init, main, found),
        conditions.ready(spec, all_ready, (pod.get("status") or {}).get("conditions") or ()),
        all_ready,
        conditions.scheduled(seen.waiting),
    ]
    if seen.over and seen.over.disruption and found == Phase.FAILED:
        own.append(verdict.condition(seen.over))
    return conditions.with_times(own, pod, now)


def _error(report: Object | None) -> Verdict | None:
    error = (report or {}).get("error")
    if not error:
        return None
    reason = error.get("reason") or Reason.ERROR
    return Verdict(reason, error.get("message") or "", (report or {}).get("phase") == "ended", reason)


def _base(pod: Object, now: datetime) -> Status:
    old = pod.get("status") or {}
    generation = pod["metadata"].get("generation")
    return {
        **{field: old[field] for field in _KEPT if old.get(field)},
        **({"observedGeneration": generation} if generation else {}),
        "startTime": old.get("startTime") or write_time(now),
    }


def _addresses(report: Object | None) -> Status:
    report = report or {}
    host, pods = report.get("host_address"), report.get("addresses") or ()
    found: Status = {"hostIP": host, "hostIPs": [{"ip": host}]} if host else {}
    return {**found, "podIP": pods[0], "podIPs": [{"ip": each} for each in pods]} if pods else found
