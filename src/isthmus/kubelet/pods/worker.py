"""The worker of one pod: observe, decide, act. Each is a task of its own, so no pod delays another.

Every event (a new version of the object, a report, a change of the job, a connection, the end of background work)
is stored in the pod's state and wakes the worker, which executes what `decide` returns. A lost or repeated wake-up
changes nothing. Slow work runs in the background. Failures are retried and affect no other pod.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from isthmus.clients.kube.api import KubeError, Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods.background import Background
from isthmus.kubelet.pods.decision.actions import Decision, Join, Replace, Work
from isthmus.kubelet.pods.decision.decide import decide
from isthmus.kubelet.pods.decision.state import Link
from isthmus.kubelet.pods.executor import Executor
from isthmus.kubelet.pods.memory import Memory
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.status import events
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.model.job_feed import Stage
from isthmus.support.backoff import Backoff

_log = logging.getLogger(__name__)


class Worker:
    """Reconciles one pod.

    Args:
        parts: the rest of the kubelet.
        pod: as the API has it, or as it was accepted when the API has it no more.
        gone: the API server has it no more.
    """

    def __init__(self, parts: Parts, pod: Object, *, gone: bool = False) -> None:
        self._parts = parts
        self._memory = Memory(pod, lambda: parts.settings, parts.jobs.others, parts.pauses, is_gone=gone)
        self._executor = Executor(parts, self._memory)
        self._background = Background(parts, self._memory, self._executor.show)
        self._work: dict[Work, asyncio.Task[None]] = {}

    @property
    def uid(self) -> str:
        """The pod's."""
        return self._memory.uid

    @property
    def pod(self) -> Object:
        """The pod, as the API last had it."""
        return self._memory.kept.pod

    @property
    def gone(self) -> bool:
        """Whether the API has it no more."""
        return self._memory.kept.is_gone

    @property
    def connection(self) -> Connection | None:
        """The pod's supervisor, if it is there."""
        link = self._memory.kept.link
        return link.peer if link and isinstance(link.peer, Connection) and not link.peer.is_closed else None

    def update(self, pod: Object) -> None:
        """Observe a newer version of the pod."""
        self._memory.note_pod(pod)

    def vanish(self) -> None:
        """Observe that the API server has the pod no more; its job must not outlive it."""
        self._memory.note(is_gone=True)

    def connected(self, connection: Connection) -> None:
        """Observe a connected supervisor."""
        has_plan = bool(connection.hello.get("has_plan"))
        link = Link(connection, connection.job, str(connection.hello.get("node")), has_plan=has_plan)
        if self._memory.kept.number is not None:
            # Slurm may report the start of the job later.
            self._memory.start.reached(Stage.QUEUE)
        self._memory.note(link=link)

    def left(self, connection: Connection) -> None:
        """Observe a disconnected supervisor; another may be connected already."""
        self._memory.drop_link(connection)
        state = self._memory.kept
        if state.number and state.link is None:
            self._parts.jobs.unattend(self.uid)

    def reported(self, report: dict[str, Any]) -> None:
        """Observe a report."""
        state = self._memory.kept
        before = state.report
        if before and before.get("job") == report.get("job") and report["sequence"] < before["sequence"]:
            return
        self._parts.services.reported(state.pod, before, report)
        for event in events.reported(state.pod, before, report):
            self._parts.recorder.record(state.pod, event.kind, event.reason, event.message, event.place)
        # Slurm is asked about a pod that ended, not about a flapping probe.
        if before is None or before.get("phase") != report.get("phase"):
            self._parts.jobs.hurry()
        if report.get("phase") == "running":
            self._memory.start.reached(Stage.REPORT)
        self._memory.note(report=report)

    async def refresh(self) -> None:
        """Send changed objects to the running pod, and renew its credential.

        Raises:
            KubeError: the API server did not answer.
        """
        await self._background.refresh()

    async def run(self) -> None:
        """Reconcile the pod until it is removed."""
        backoff = Backoff(*self._parts.pauses.retry)
        try:
            while not self._memory.kept.is_removed:
                try:
                    await self._look()
                    backoff.reset()
                    continue
                except (KubeError, OSError) as error:
                    _log.warning("pod %s: %s", self.uid, error)
                except Exception as error:
                    _log.exception("pod %s", self.uid)
                    message = f"{type(error).__name__}: {error}"
                    self._parts.recorder.record(self.pod, Kind.WARNING, EventReason.KUBELET, message)
                if self._memory.kept.number is None:
                    # A job may exist nevertheless.
                    self._memory.note(is_adopted=False, prepared=None)
                await asyncio.sleep(backoff.next_s())
        finally:
            await self._begin(frozenset())

    async def _look(self) -> None:
        """Observe, decide, act; then wait until something happens."""
        self._memory.changed.clear()
        state = self._memory.observe()
        decision = decide(state)
        await self._begin(decision.work)
        self._memory.forget_done(decision.work)
        for action in decision.actions:
            await self._executor.act(action)
        await self._wait(decision)

    async def _wait(self, decision: Decision) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, decision.look_in_s)):
                await self._memory.changed.wait()

    async def _begin(self, wanted: frozenset[Work]) -> None:
        """Start desired work and cancel the rest."""
        given_up = [self._work.pop(work) for work in [*self._work] if work not in wanted]
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)
        for work in wanted - self._work.keys() - self._memory.kept.done:
            task = asyncio.create_task(self._background.do(work), name=f"{type(work).__name__} of pod {self.uid}")
            self._work[work] = task
            task.add_done_callback(lambda task, work=work: self._ended(work, task))  # type: ignore[misc]

    def _ended(self, work: Work, task: asyncio.Task[None]) -> None:
        if self._work.get(work) is not task:
            return
        del self._work[work]
        if isinstance(work, Join | Replace):
            self._memory.note(done=self._memory.kept.done | {work})
        self._memory.changed.set()
        if not task.cancelled() and (error := task.exception()):
            _log.error("%s of pod %s", type(work).__name__, self.uid, exc_info=error)
