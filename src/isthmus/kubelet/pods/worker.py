"""One pod, from its first sight to its last file; a task of its own, so that no pod holds up another.

    adopt the job that exists, or prepare and submit -> follow job and supervisor -> over -> deleted -> removed

Everything that happens (the API's object, a report, a word of Slurm, a supervisor that comes or goes) is written down
and wakes the worker, which then looks at all of it: a lost or repeated wake changes nothing.
On deletion: stop (hooks, SIGTERM, grace) -> job gone -> files gone -> API object gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from isthmus.clients.kube.api import ConflictError, KubeError, NotFoundError, Object
from isthmus.clients.slurm.pod_jobs import NoAnswerError
from isthmus.kubelet.admit import pod as refusals
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods import starting, verdict
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.starting import NeverError, NotYetError, Prepared
from isthmus.kubelet.pods.stopping import Stopping
from isthmus.kubelet.pods.talking import Talk
from isthmus.kubelet.status import conditions, events
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.status.events import Kind
from isthmus.model.pod_inputs import ImageState
from isthmus.model.pod_job import SlurmJob

_FINAL = ("Succeeded", "Failed")
_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


class Worker:
    """Sees to one pod.

    Args:
        parts: the rest of the kubelet.
        pod: as the API has it, or as it was accepted when the API has it no more.
        gone: the API has it no more.
    """

    def __init__(self, parts: Parts, pod: Object, *, gone: bool = False) -> None:
        self.pod = pod
        self.gone = gone
        self.job: SlurmJob | None = None
        self.number: str | None = None
        self.report: dict[str, Any] | None = None
        self._parts = parts
        self._folder = parts.store.folder(pod["metadata"]["uid"])
        self.states: dict[str, ImageState] = {}
        self._published: Object | None = None
        self._wake = asyncio.Event()
        self._deleted = asyncio.Event()
        self._stopping: Stopping | None = None
        self.talk = Talk(parts, self)
        if self.is_deleted:
            self._deleted.set()

    @property
    def uid(self) -> str:
        """The pod's."""
        return str(self.pod["metadata"]["uid"])

    @property
    def is_deleted(self) -> bool:
        """Whether the pod shall go."""
        return self.gone or bool(self.pod["metadata"].get("deletionTimestamp"))

    def update(self, pod: Object) -> None:
        """Take a newer version of the pod; an older one is what a watch still had on its way."""
        if int(pod["metadata"]["resourceVersion"]) >= int(self.pod["metadata"]["resourceVersion"]):
            self.pod = pod
            if self.is_deleted:
                self._deleted.set()
            self.wake()

    def vanish(self) -> None:
        """The API has the pod no more; its job must not outlive it."""
        self.gone = True
        self._deleted.set()
        self.wake()

    async def connected(self, connection: Connection) -> None:
        """Take the supervisor that has come."""
        await self.talk.begin(connection)
        self.wake()

    def left(self) -> None:
        """Take that a supervisor has gone; another may be there already."""
        talk = self.talk
        if self.number and (talk.connection is None or talk.connection.is_closed):
            self._parts.jobs.unattend(self.uid)
        self.wake()

    def reported(self, report: dict[str, Any]) -> None:
        """Take what the supervisor says."""
        before = self.report
        if before and before.get("job") == report.get("job") and report["sequence"] < before["sequence"]:
            return
        self.report = report
        self._parts.services.reported(self.pod, before, report)
        for event in events.probes(self.pod, before, report):
            self._parts.recorder.tell(self.pod, event.kind, event.reason, event.message, event.place)
        # A probe that flaps is nothing that Slurm knows of; a pod that has ended is.
        if before is None or before.get("phase") != report.get("phase"):
            self._parts.jobs.hurry()
        self.wake()

    async def refresh(self) -> None:
        """Bring what has changed to the running pod, and renew its credential.

        Raises:
            KubeError: the API server did not say.
        """
        if self.number and not (self.job and self.job.state.ended):
            await self.talk.refresh()
            await asyncio.to_thread(self._folder.renew_credential, self._parts.authority)

    def wake(self) -> None:
        """Have the worker look."""
        self._wake.set()

    async def run(self) -> None:
        """See to the pod until nothing is left of it. Whatever goes wrong is tried again, and ends nothing else."""
        pause_s, longest_s = self._parts.pauses.retry
        while True:
            try:
                await self._live()
                return
            except (KubeError, OSError) as error:
                _log.warning("pod %s: %s", self.uid, error)
            except Exception as error:
                _log.exception("pod %s", self.uid)
                self._parts.recorder.tell(self.pod, Kind.WARNING, "KubeletError", f"{type(error).__name__}: {error}")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, longest_s)

    async def _live(self) -> None:
        if self.number is None:
            self.number = await self._adopt() or await self._start()
        if self.number:
            await self.talk.resume()
            await self._follow(self.number)
        await self._deleted.wait()
        await self._remove()

    async def _adopt(self) -> str | None:
        """Return the job that the pod has already, from before a crash; None when there is none."""
        if number := await asyncio.to_thread(self._folder.job):
            self.report = await asyncio.to_thread(self._folder.report)
            return number
        if await asyncio.to_thread(self._folder.pod) is None:
            return None
        found = await self._parts.jobs.find(self.uid)
        if found:
            await self._note_job(found.id)
        return found.id if found else None

    async def _note_job(self, number: str) -> None:
        """Write the pod's job down; where the home does not take it, the job's comment tells it as well."""
        try:
            await asyncio.to_thread(self._folder.set_job, number)
        except OSError as error:
            _log.warning("job %s of pod %s is not written down: %s", number, self.uid, error)

    async def _start(self) -> str | None:
        """Prepare and submit until there is a job; None for a pod that is deleted first, or can never run."""
        pause_s = 0.0
        while not self.is_deleted and self.pod.get("status", {}).get("phase") not in _FINAL:
            try:
                prepared = await self._unless_deleted(starting.prepare(self._parts, self.pod, show=self._shown))
                if prepared:
                    return await self._submit(prepared)
            except NeverError as error:
                await self._publish(status.refused(self.pod, error.problems, datetime.now(UTC)))
                return None
            except NotYetError as error:
                await self._publish(error.status)
                pause_s = min(max(pause_s * 2, error.pauses[0]), error.pauses[1])
                await self._unless_deleted(asyncio.sleep(pause_s))
        return None

    async def _submit(self, prepared: Prepared) -> str:
        self.states = dict(prepared.states)
        self.talk.plan = prepared.plan
        try:
            number = await starting.submit(self._parts, self.pod, prepared)
        except NoAnswerError as error:
            self._parts.recorder.tell(self.pod, Kind.WARNING, "SlurmSilent", str(error))
            found = await self._parts.jobs.find(self.uid)
            if found is None:
                shown = status.pod_status(self.pod, None, None, self.states, datetime.now(UTC))
                raise NotYetError(shown, str(error), self._parts.pauses.retry) from error
            await self._note_job(found.id)
            number = found.id
        self._parts.recorder.tell(self.pod, Kind.NORMAL, "Submitted", f"Submitted as Slurm job {number}")
        for text in refusals.ignored(self.pod):
            self._parts.recorder.tell(self.pod, Kind.WARNING, "NotAsElsewhere", text)
        return number

    async def _follow(self, number: str) -> None:
        """Show how the pod is, and stop it when it shall stop, until its job has ended."""
        self._parts.jobs.watch(self.uid, number, self._job_changed)
        while True:
            self._wake.clear()
            for other in self._parts.jobs.others(self.uid, number):
                await self._parts.jobs.cancel(self.uid, other)
            if self.job and self.job.state.ended:
                break
            if self.job or self.report:
                await self._show()
            self.talk.catch_up()
            wait_s = min(await self._stop(number), self._overdue_in_s())
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()
        self.report = _newer(await asyncio.to_thread(self._folder.report), self.report)
        if self.job and (self.report or {}).get("phase") != "ended":
            self.job = replace(self.job, log=await asyncio.to_thread(self._folder.last_words))
        await self._show()
        await asyncio.to_thread(self._folder.drop_credential)
        self._parts.jobs.forget(self.uid)

    def _job_changed(self, job: SlurmJob) -> None:
        self.job = job
        self.wake()

    def _overdue_in_s(self) -> float:
        due = verdict.deadline(self.pod, self.job)
        left_s = (due - datetime.now(UTC)).total_seconds() if due else 60.0
        return left_s if left_s > 0 else 60.0

    async def _stop(self, number: str) -> float:
        """Stop the pod if it shall stop; return after how many seconds to look again."""
        late = self.job is not None and verdict.overdue(self.pod, self.job, datetime.now(UTC)) is not None
        if not (self.is_deleted or late):
            return 60.0
        if self._stopping is None:
            self._stopping = Stopping(self._parts, self.uid, number)
            self._parts.recorder.tell(self.pod, Kind.NORMAL, "Killing", f"Stopping Slurm job {number}")
        return await self._stopping.go_on(self.pod, self.job, self.talk.connection, gone=self.gone)

    async def _shown(self, shown: Object) -> Object:
        await self._publish(shown)
        return self.pod

    async def _show(self) -> None:
        shown = status.pod_status(self.pod, self.report, self.job, self.states, datetime.now(UTC))
        await self._publish(shown)

    async def _publish(self, shown: Object) -> None:
        """Write the status where it differs from what the API server has."""
        old = self.pod.get("status") or {}
        if self.gone or shown == self._published or all(old.get(key) == value for key, value in shown.items()):
            return
        # What was said before and is true no more is taken back.
        taken = {key: None for key in ("reason", "message") if key in old and key not in shown}
        told = {**taken, **shown, "conditions": conditions.merged(shown["conditions"], old.get("conditions") or ())}
        meta = self.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        try:
            answer = await self._parts.kube.patch(path, {"metadata": {"uid": self.uid}, "status": told})
        except (NotFoundError, ConflictError):
            # Whether it is gone the watch tells.
            return
        self._published = shown
        for event in events.changes(old, shown, self.job, events.full_name(self.pod)):
            self._parts.recorder.tell(self.pod, event.kind, event.reason, event.message, event.place)
        self.update(answer)

    async def _remove(self) -> None:
        """Remove what is left: the files, then the API's object, if it still is this pod."""
        self._parts.config.tokens.forget(self.uid)
        self.talk.end()
        try:
            await asyncio.to_thread(self._folder.remove)
        except OSError as error:
            # The API's object does not wait for a home: a folder without one is removed when that can be written.
            _log.warning("the folder of pod %s stays for now: %s", self.uid, error)
            await self._remove_object()
            raise
        await self._remove_object()

    async def _remove_object(self) -> None:
        if self.gone:
            return
        meta = self.pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        with suppress(ConflictError):
            await self._parts.kube.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})

    async def _unless_deleted(self, work: Coroutine[Any, Any, _Result]) -> _Result | None:
        """Do some work; give it up, and return None, when the pod is deleted meanwhile."""
        task = asyncio.ensure_future(work)
        deleted = asyncio.ensure_future(self._deleted.wait())
        try:
            await asyncio.wait((task, deleted), return_when=asyncio.FIRST_COMPLETED)
            return await task if task.done() else None
        finally:
            for one in (task, deleted):
                one.cancel()


def _newer(kept: dict[str, Any] | None, told: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the later of a pod's reports; the file may be behind what the supervisor said, where the home was full."""
    if kept is None or told is None:
        return kept or told
    behind = kept.get("job") == told.get("job") and kept["sequence"] < told["sequence"]
    return told if behind else kept
