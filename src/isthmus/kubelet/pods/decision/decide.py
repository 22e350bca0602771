"""Decides the next actions of a pod from its observed state. Pure and deterministic.

    not adopted -> adopt -> no job: prepare, submit -> job: attach, plan, show, stop -> ended: finish -> deleted: remove

Decisions are level-triggered: they depend on the state, not on its history, so a restarted kubelet resumes. Only the
job that is recorded gets a plan: a second job of the same pod, which a crash during submission might leave, runs
nothing and is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.kubelet.admit import containers as refusals
from isthmus.kubelet.pods import verdict
from isthmus.kubelet.pods.decision import actions, replacing
from isthmus.kubelet.pods.decision.actions import Action, Decision, Work
from isthmus.kubelet.pods.decision.state import FINAL, Link, PodState
from isthmus.kubelet.pods.decision.stopping import given_s, grace_s
from isthmus.kubelet.status import pod as status

# Between two decisions for a pod that is being stopped.
_LOOK_S = 1.0
_IDLE_S = 60.0
# Between two attempts to cancel a job of a withdrawn gang.
_AGAIN_S = 5.0


def decide(state: PodState) -> Decision:
    """Return the actions and work for a pod."""
    if state.is_removed:
        return Decision()
    if not state.is_adopted:
        return Decision((actions.Adopt(),))
    if state.number is None:
        return _without_job(state)
    if state.is_withdrawn and not state.is_deleted:
        return _withdrawn(state, state.number)
    return _ended(state) if state.has_ended else _with_job(state)


def publish(state: PodState, shown: Mapping[str, Any]) -> Iterator[Action]:
    """Yield the publication of a status that differs from the published one."""
    old = state.pod.get("status") or {}
    if not (state.is_gone or shown == state.published or all(old.get(key) == value for key, value in shown.items())):
        yield actions.Publish(shown)


def _without_job(state: PodState) -> Decision:
    """Prepare and submit, unless the pod is deleted first, or can never run."""
    if state.is_deleted:
        return Decision((actions.Remove(),))
    if (state.pod.get("status") or {}).get("phase") in FINAL:
        return Decision()
    if state.problems:
        return Decision((*publish(state, status.refused(state.pod, state.problems, state.now)),))
    if state.held:
        return _held(state, state.held.until_s - state.now_s)
    if state.prepared is None:
        return Decision(work=frozenset({actions.Prepare()}))
    if state.is_in_gang and not state.has_turn:
        return Decision(work=frozenset({actions.Turn()}))
    return Decision((actions.Submit(),))


def _withdrawn(state: PodState, number: str) -> Decision:
    """Cancel a job whose containers have not started, and start over: another pod of the gang got no nodes."""
    if state.has_ended:
        return Decision((actions.GiveBack(),))
    return Decision((*(() if state.is_watched else (actions.Watch(),)), actions.Cancel(number)), look_in_s=_AGAIN_S)


def _held(state: PodState, left_s: float) -> Decision:
    if left_s <= 0:
        return Decision((actions.Retry(),))
    shown = state.held.status if state.held else None
    return Decision((*(publish(state, shown) if shown else ()),), look_in_s=left_s)


def _with_job(state: PodState) -> Decision:
    """Attach the supervisor, send it the plan, stop a pod that is deleted or overdue, and publish the status."""
    taken = [
        *(() if state.is_watched else (actions.Watch(),)),
        *map(actions.Cancel, state.others),
    ]
    work: set[Work] = set()
    look_in_s = min(_IDLE_S, _overdue_in_s(state))
    link = state.link
    if link and link.job != state.number:
        taken.append(actions.Reject(link.peer))
    elif link and not link.is_attached:
        taken.append(actions.Attach(link.peer))
    elif link:
        for one in (*_planning(state, link), *_containers(state, link)):
            if isinstance(one, Work):
                work.add(one)
            else:
                taken.append(one)
        if state.held and not link.has_plan:
            look_in_s = min(look_in_s, max(0.0, state.held.until_s - state.now_s))
    stopping, soon_s = _stopping(state)
    taken += [*stopping, *(publish(state, shown(state)) if state.job or state.report else ())]
    return Decision(tuple(taken), frozenset(work), min(look_in_s, soon_s))


def _ended(state: PodState) -> Decision:
    """Read the last report, publish the final status, and remove a deleted pod."""
    if not state.is_finished:
        return Decision((*map(actions.Cancel, state.others), actions.Finish()))
    last = (actions.Remove(),) if state.is_deleted else ()
    return Decision((*publish(state, shown(state)), *last))


def shown(state: PodState) -> Mapping[str, Any]:
    """Return the status of a pod that has a job."""
    return status.pod_status(state.pod, state.report, state.job, state.images, state.now)


def _planning(state: PodState, link: Link) -> Iterator[Action | Work]:
    """Return the work for a supervisor without a plan; a pod that stops needs none."""
    if link.has_plan or state.is_deleted:
        return
    if state.is_in_gang and not state.is_together:
        yield actions.Together()
        return
    if not link.is_greeted:
        yield actions.Greet(link.peer)
    plan = state.prepared.plan if state.prepared else None
    if plan is not None and replacing.is_current(plan, state.pod):
        if link.is_greeted:
            yield actions.SendPlan(link.peer, plan)
    elif state.held is None:
        yield actions.Prepare(link.node)
    elif state.held.until_s <= state.now_s:
        yield actions.Retry()


def _containers(state: PodState, link: Link) -> Iterator[Action | Work]:
    """Return the work for containers that change in a running pod: new images, ephemeral containers."""
    if not state.report:
        return
    for name, image in replacing.changed(state.pod, state.report).items():
        yield actions.Replace(link.peer, name, image)
    known = state.refused | (state.report.get("containers") or {}).keys()
    for one in state.pod["spec"].get("ephemeralContainers") or ():
        join = actions.Join(link.peer, one["name"])
        if one["name"] in known:
            continue
        problems = () if join in state.done else refusals.ephemeral(state.pod, one["name"], state.settings)
        yield actions.RefuseContainer(one["name"], tuple(problems)) if problems else join


def _stopping(state: PodState) -> tuple[list[Action], float]:
    """Return the next step of a pod's termination, and when to decide again.

    Its supervisor runs preStop hooks, sends SIGTERM and waits for the grace period. Without a supervisor, or when the
    time is over, the job is cancelled. A grace period that was shortened (`kubectl delete --now`) is passed on.
    """
    late = state.job is not None and verdict.overdue(state.pod, state.job, state.now) is not None
    if not (state.is_deleted or late) or state.number is None:
        return [], _IDLE_S
    stop = state.stop
    if stop is None:
        return [actions.BeginStop()], _LOOK_S
    # A pending job has no supervisor to ask.
    if state.job and state.job.state.waiting:
        is_due = stop.cancelled_s is None or state.now_s - stop.cancelled_s >= _LOOK_S
        return [actions.Cancel(state.number)] if is_due else [], _LOOK_S
    link, whole_s = state.link, 0 if state.is_gone else given_s(state.pod)
    if (
        link
        and link.is_attached
        and (stop.notified is None or stop.notified[0] != link.peer or whole_s < stop.notified[1])
    ):
        left_s = 0 if state.is_gone else grace_s(state.pod, state.now)
        return [actions.SendStop(link.peer, left_s, whole_s)], _LOOK_S
    due_s = stop.cancel_at_s - state.now_s
    if due_s <= 0:
        return [actions.Cancel(state.number)], _LOOK_S
    return [], min(due_s, _LOOK_S) if stop.notified else due_s


def _overdue_in_s(state: PodState) -> float:
    due = verdict.deadline(state.pod, state.job)
    left_s = (due - state.now).total_seconds() if due else _IDLE_S
    return left_s if left_s > 0 else _IDLE_S
