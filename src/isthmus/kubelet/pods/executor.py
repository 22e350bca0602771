"""Executes the actions decided for one pod and stores their results in its state.

A failed action leaves the state unchanged, so the same action is decided again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from isthmus.clients.kube.api import ConflictError, NotFoundError, Object
from isthmus.clients.slurm.pod_jobs import NoAnswerError
from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods import starting
from isthmus.kubelet.pods.decision import actions
from isthmus.kubelet.pods.decision.actions import Action
from isthmus.kubelet.pods.decision.state import Stop
from isthmus.kubelet.pods.memory import Memory
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.starting import NeverError, NotYetError
from isthmus.kubelet.status import conditions, events
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.model.job_feed import Stage
from isthmus.model.pod_job import SlurmJob

_log = logging.getLogger(__name__)


class Executor:
    """Executes the actions of one pod.

    Args:
        parts: the rest of the kubelet.
        memory: the pod's state.
    """

    def __init__(self, parts: Parts, memory: Memory) -> None:
        self._parts, self._memory = parts, memory
        self._folder = parts.store.folder(memory.uid)

    async def act(self, action: Action) -> None:
        """Execute an action.

        Raises:
            KubeError: the API server refused the write or did not answer.
            OSError: the home cannot be written.
        """
        if isinstance(action, actions.OfSupervisor):
            await self._talk(action)
            return
        match action:
            case actions.Adopt():
                await self._adopt()
            case actions.Retry():
                self._memory.note(held=None)
            case actions.Submit():
                await self._submit()
            case actions.Watch():
                self._watch()
            case actions.Cancel(number):
                await self._cancel(number)
            case actions.RefuseContainer(name, problems):
                self._record(Kind.WARNING, EventReason.UNSUPPORTED, "; ".join(problems))
                self._memory.note(refused=self._memory.kept.refused | {name})
            case actions.BeginStop():
                self._record(Kind.NORMAL, EventReason.KILLING, f"Stopping Slurm job {self._memory.kept.number}")
                self._memory.note(stop=Stop(time.monotonic() + self._parts.pauses.connect))
            case actions.Finish():
                await self._finish()
            case actions.GiveBack():
                await self._give_back()
            case actions.Publish(shown):
                await self.show(shown)
            case actions.Remove():
                await self._remove()
            case _:
                assert_never(action)

    async def show(self, shown: Mapping[str, Any]) -> None:
        """Publish the pod's status, and record events of its changes.

        Raises:
            KubeError: the API server refused the write or did not answer.
        """
        state = self._memory.kept
        old, meta = state.pod.get("status") or {}, state.pod["metadata"]
        # Fields of the old status that no longer hold are removed.
        taken = {key: None for key in ("reason", "message") if key in old and key not in shown}
        merged = conditions.merged(shown["conditions"], old.get("conditions") or ())
        written = {**taken, **shown, **status.renewed(shown, old), "conditions": merged}
        try:
            answer = await self._parts.kube.patch(
                f"{_path(meta)}/status", {"metadata": {"uid": self._memory.uid}, "status": written}
            )
        except (NotFoundError, ConflictError):
            # The watch reports the deletion.
            return
        self._memory.note(published=shown)
        if shown.get("phase") != "Pending":
            self._memory.start.reached(Stage.STATUS)
        for event in events.changes(old, shown, state.job, events.full_name(state.pod)):
            self._record(event.kind, event.reason, event.message, event.place)
        self._memory.note_pod(answer)

    async def _talk(self, action: actions.OfSupervisor) -> None:
        """Execute an action on a supervisor; ignored once it has disconnected."""
        state, connection = self._memory.kept, action.peer
        assert isinstance(connection, Connection)  # noqa: S101  for mypy: `actions` is pure
        match action:
            case actions.Reject():
                _log.warning(
                    "job %s is not that of pod %s, which is %s", connection.job, self._memory.uid, state.number
                )
                # Only Slurm knows which jobs are the pod's: a superfluous one is cancelled when it appears in the
                # queue.
                connection.close()
                self._parts.jobs.hurry()
                self._memory.drop_link(connection)
            case actions.Attach():
                self._parts.jobs.attend(self._memory.uid)
                # Only a pod with its own network namespace has rules for Services.
                if not state.pod["spec"].get("hostNetwork"):
                    self._parts.services.begin(connection)
                self._memory.note_link(connection, is_attached=True)
            case actions.SendPlan(_, plan):
                await connection.send(starting.plan_json(plan, connection.version))
                # The plan holds secrets and is not needed again.
                self._memory.note(prepared=None)
                self._memory.note_link(connection, has_plan=True)
            case actions.SendStop(_, left_s, whole_s):
                await connection.send({"type": "stop", "grace_s": left_s})
                at_s = time.monotonic() + left_s + self._parts.pauses.margin
                self._memory.note(stop=Stop(at_s, (connection, whole_s)))
            case _:
                assert_never(action)

    async def _adopt(self) -> None:
        """Find a job that was submitted before a crash."""
        number = await asyncio.to_thread(self._folder.job)
        report = self._memory.kept.report
        if number:
            report = _newer(await asyncio.to_thread(self._folder.report), report)
        elif await asyncio.to_thread(self._folder.pod) is not None and (
            found := await self._parts.jobs.find(self._memory.uid)
        ):
            number = found.id
            await self._note_job(number)
        if number:
            self._parts.gangs.adopt(self._memory.kept.pod)
            self._memory.start.give_up()
        self._memory.note(is_adopted=True, number=number, report=report)

    async def _submit(self) -> None:
        """Submit the job; after a lost answer the queue is searched for it."""
        state = self._memory.kept
        if state.prepared is None:
            return
        self._memory.note_images(state.prepared.states)
        try:
            number = await starting.submit(self._parts, state.pod, state.prepared)
        except NeverError as error:
            self._parts.gangs.leave(self._memory.uid)
            self._memory.note(problems=tuple(error.problems), prepared=None)
            return
        except NotYetError as error:
            self._memory.hold(error.status, error.pauses)
            return
        except NoAnswerError as error:
            self._record(Kind.WARNING, EventReason.SLURM_SILENT, str(error))
            found = await self._parts.jobs.find(self._memory.uid)
            if found is None:
                now = self._memory.observe()
                self._memory.hold(status.pod_status(now.pod, None, None, now.images, now.now), self._parts.pauses.retry)
                return
            await self._note_job(found.id)
            number = found.id
        self._memory.note(number=number)
        self._memory.start.reached(Stage.SUBMIT)
        if self._memory.kept.link is not None:
            # The job started before sbatch answered.
            self._memory.start.reached(Stage.QUEUE)
        self._record(Kind.NORMAL, EventReason.SUBMITTED, f"Submitted as Slurm job {number}")
        for text in refusals.ignored(state.pod):
            self._record(Kind.WARNING, EventReason.NOT_AS_ELSEWHERE, text)

    async def _note_job(self, number: str) -> None:
        """Record the pod's job; if the home cannot be written, the job's comment still identifies it."""
        try:
            await asyncio.to_thread(self._folder.set_job, number)
        except OSError as error:
            _log.warning("job %s of pod %s is not recorded: %s", number, self._memory.uid, error)

    def _watch(self) -> None:
        number = self._memory.kept.number
        if number is not None:
            self._memory.note(is_watched=True)
            self._parts.jobs.watch(self._memory.uid, number, self._job_changed)

    def _job_changed(self, job: SlurmJob) -> None:
        self._memory.note(job=job)
        if not (job.state.waiting or job.state.ended):
            self._memory.start.reached(Stage.QUEUE)
            self._parts.gangs.has_nodes(self._memory.uid)

    async def _give_back(self) -> None:
        """Forget the job and its observed state."""
        number = self._memory.kept.number
        self._record(Kind.NORMAL, EventReason.GAVE_BACK, f"Slurm job {number} was ended before its containers began")
        self._parts.jobs.forget(self._memory.uid)
        self._memory.start.give_up()
        await asyncio.to_thread(self._folder.forget_job)
        fresh = {"number": None, "job": None, "report": None, "link": None, "prepared": None}
        self._memory.note(**fresh, is_watched=False, is_withdrawn=False)

    async def _cancel(self, number: str) -> None:
        await self._parts.jobs.cancel(self._memory.uid, number)
        stop = self._memory.kept.stop
        if stop is not None and number == self._memory.kept.number:
            now_s = time.monotonic()
            at_s = now_s + self._parts.pauses.margin
            self._memory.note(stop=replace(stop, cancel_at_s=at_s, cancelled_s=now_s))

    async def _finish(self) -> None:
        """Read the last report of the job."""
        state = self._memory.kept
        report, job = _newer(await asyncio.to_thread(self._folder.report), state.report), state.job
        if job and (report or {}).get("phase") != "ended":
            job = replace(job, log=await asyncio.to_thread(self._folder.last_words))
        await asyncio.to_thread(self._folder.drop_credential)
        self._parts.jobs.forget(self._memory.uid)
        self._parts.gangs.leave(self._memory.uid)
        self._memory.note(report=report, job=job, is_finished=True)

    async def _remove(self) -> None:
        """Remove the pod's files, then the API object if it is still this pod."""
        self._parts.config.tokens.forget(self._memory.uid)
        self._parts.gangs.leave(self._memory.uid)
        link = self._memory.kept.link
        if link is not None and isinstance(link.peer, Connection):
            link.peer.close()
        try:
            await asyncio.to_thread(self._folder.remove)
        except OSError as error:
            # The API object does not wait for the home: an orphaned folder is removed when the home can be written.
            _log.warning("the folder of pod %s is removed later: %s", self._memory.uid, error)
            await self._remove_object()
            raise
        await self._remove_object()
        self._memory.note(is_removed=True)

    async def _remove_object(self) -> None:
        state = self._memory.kept
        if state.is_gone:
            return
        with suppress(ConflictError):
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self._memory.uid}}
            await self._parts.kube.delete(_path(state.pod["metadata"]), body)

    def _record(self, kind: Kind, reason: str, message: str, place: str = "") -> None:
        self._parts.recorder.record(self._memory.kept.pod, kind, reason, message, place)


def _path(meta: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def _newer(kept: Object | None, reported: Object | None) -> Object | None:
    """Return the newer of two reports; the file may be older than the channel's, e.g. after the home was full."""
    if kept is None or reported is None:
        return kept or reported
    behind = kept.get("job") == reported.get("job") and kept["sequence"] < reported["sequence"]
    return reported if behind else kept
