"""What a worker says to its pod's supervisor: the plan once, what changed in it, ephemeral containers.

Only the job that is written down gets a plan. A second job of the same pod, which a crash at the wrong moment might
leave, runs nothing and is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from isthmus.clients.kube.api import KubeError
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods import ephemeral, joining, replacing, starting
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.starting import NeverError, NotYetError
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.translate import pod as translate
from isthmus.podproto.plan import Plan, to_json

_log = logging.getLogger(__name__)


class Pod(ephemeral.Pod, Protocol):
    """What is known of the pod that is talked about."""

    number: str | None


class Talk:
    """The kubelet's side of one pod's channel.

    Args:
        parts: the rest of the kubelet.
        worker: the pod's.
    """

    def __init__(self, parts: Parts, worker: Pod) -> None:
        self.plan: Plan | None = None
        self.connection: Connection | None = None
        self._parts, self._worker = parts, worker
        self._waiting: Connection | None = None
        self._planning: asyncio.Task[None] | None = None
        self._volumes: Any = None
        self._replacing = replacing.Replacing(parts, worker)
        self._joining = joining.Joining(parts, worker)

    async def begin(self, connection: Connection) -> None:
        """Take a supervisor that says hello."""
        number = self._worker.number
        if number is None:
            # sbatch has not returned yet, or the job has not been found again.
            self._waiting = connection
            return
        if connection.job != number:
            _log.warning("job %s is not that of pod %s, which is %s", connection.job, connection.uid, number)
            # Slurm says which jobs are the pod's, not who calls: the worker cancels one too many when Slurm shows it.
            connection.close()
            self._parts.jobs.hurry()
            return
        self.connection = connection
        self._parts.jobs.attend(connection.uid)
        # The rules for Services lie in a network of the pod's own.
        if not self._worker.pod["spec"].get("hostNetwork"):
            self._parts.services.begin(connection)
        if self._planning:
            self._planning.cancel()
        if not connection.hello.get("has_plan"):
            self._planning = asyncio.create_task(self._plan(connection))

    async def resume(self) -> None:
        """Take the supervisor that said hello before the job's number was known."""
        if self._waiting:
            connection, self._waiting = self._waiting, None
            await self.begin(connection)

    def end(self) -> None:
        """Say nothing more."""
        self._replacing.end()
        self._joining.end()
        if self._planning:
            self._planning.cancel()
        if self.connection:
            self.connection.close()

    async def refresh(self) -> None:
        """Send the volumes of files anew if they have changed.

        Raises:
            KubeError: the API server did not say.
        """
        connection, pod = self.connection, self._worker.pod
        if connection is None or connection.is_closed or pod["metadata"].get("deletionTimestamp"):
            return
        if self._planning and not self._planning.done():
            return
        try:
            volumes = to_json(translate.update(pod, await self._parts.config.resolve(pod, {})))
        except UnreadyError as error:
            _log.info("pod %s keeps its files: %s", connection.uid, error)
            return
        if volumes and volumes != self._volumes:
            await connection.send({"type": "update", "volumes": volumes})
        self._volumes = volumes

    def catch_up(self) -> None:
        """Forget a supervisor that has gone; send changed images, and ephemeral containers that are new."""
        if self.connection and self.connection.is_closed:
            self.connection = None
        if self.connection is None or not self._worker.report:
            return
        self._replacing.look(self.connection)
        self._joining.look(self.connection)

    async def _plan(self, connection: Connection) -> None:
        """Send the plan, made anew where it is not known any more, as soon as it can be made."""
        pause_s, longest_s = self._parts.pauses.retry
        await self._parts.services.greeted(connection)
        while not connection.is_closed:
            try:
                kept = self.plan if self.plan and replacing.is_current(self.plan, self._worker.pod) else None
                plan = kept or await self._made(connection)
                await connection.send(starting.plan_json(plan, connection.version))
                # It holds secrets, and is not asked for again.
                self.plan = None
                return
            except (NotYetError, NeverError, KubeError) as error:
                self._parts.recorder.tell(self._worker.pod, Kind.WARNING, "FailedPlan", str(error))
            except Exception as error:
                _log.exception("plan of pod %s", connection.uid)
                self._parts.recorder.tell(self._worker.pod, Kind.WARNING, "KubeletError", repr(error))
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, longest_s)

    async def _made(self, connection: Connection) -> Plan:
        node = str(connection.hello.get("node"))
        prepared = await starting.prepare(self._parts, self._worker.pod, node)
        if prepared.plan is None:
            raise KubeError("a claim of the pod has no volume yet")
        return prepared.plan
