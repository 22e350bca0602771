"""All pods of the node: their workers by UID, and look-ups for the channel and the kubelet API.

The API server's list and watch give the desired pods, the folders on disk the known ones. A folder whose pod the API
server has no more is an orphan: its job is cancelled and its files are removed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from isthmus.clients.kube.api import KubeError, Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.objects.watching import follow
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.store import PodFolder
from isthmus.kubelet.pods.worker import Worker

_AT_ONCE = 8

_log = logging.getLogger(__name__)


class Pods:
    """The workers.

    Args:
        parts: dependencies shared by workers.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._workers: dict[str, Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._known = asyncio.Event()

    async def run(self) -> None:
        """Watch the pods of this node."""
        mine = {"fieldSelector": f"spec.nodeName={self._parts.settings.node}"}
        await follow(self._parts.kube, "/api/v1/pods", mine, self._listed, self._changed)

    async def refresh(self) -> None:
        """Periodically send changed objects to running pods and renew their credentials."""
        free = asyncio.Semaphore(_AT_ONCE)
        while True:
            await asyncio.sleep(self._parts.pauses.refresh)
            await asyncio.gather(*(self._refresh(worker, free) for worker in [*self._workers.values()]))

    async def stop(self) -> None:
        """Stop all workers; jobs and their supervisors continue."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def worker(self, uid: str) -> Worker | None:
        """Return a pod's worker."""
        return self._workers.get(uid)

    def named(self, namespace: str, name: str) -> Object | None:
        """Return a pod of this node."""
        for pod in self.all():
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name):
                return pod
        return None

    def all(self) -> list[Object]:
        """Return all pods of this node."""
        return [worker.pod for worker in self._workers.values() if not worker.gone]

    def connection(self, uid: str) -> Connection | None:
        """Return the connection of a pod's supervisor, or None."""
        worker = self._workers.get(uid)
        return worker.connection if worker else None

    def folder(self, uid: str) -> PodFolder:
        """Return a pod's folder."""
        return self._parts.store.folder(uid)

    async def connected(self, connection: Connection) -> None:
        """Hand a supervisor to its pod's worker; after a start it waits for the first list of pods."""
        await self._known.wait()
        if worker := self._workers.get(connection.uid):
            worker.connected(connection)
        else:
            # The pod is not listed yet, or is gone; the supervisor reconnects.
            connection.close()

    def reported(self, connection: Connection, report: dict[str, Any]) -> None:
        """Hand a report to its pod's worker."""
        if worker := self._workers.get(connection.uid):
            worker.reported(report)

    def left(self, connection: Connection) -> None:
        """Notify the worker of a disconnected supervisor."""
        if worker := self._workers.get(connection.uid):
            worker.left(connection)

    def _listed(self, pods: list[Object]) -> None:
        listed = {pod["metadata"]["uid"] for pod in pods}
        for pod in pods:
            self._changed("ADDED", pod)
        for uid, worker in self._workers.items():
            if uid not in listed:
                worker.vanish()
        for folder in self._parts.store.folders():
            if folder.uid not in self._workers:
                self._adopt_orphan(folder)
        self._known.set()

    def _adopt_orphan(self, folder: PodFolder) -> None:
        _log.info("pod %s is not in the API server any more; its job is cancelled", folder.uid)
        identity = {"uid": folder.uid, "name": folder.uid, "namespace": "default", "resourceVersion": "0"}
        pod = folder.pod() or {"metadata": identity, "spec": {"containers": []}}
        self._begin(Worker(self._parts, pod, gone=True))

    def _changed(self, kind: str, pod: Object) -> None:
        worker = self._workers.get(pod["metadata"]["uid"])
        if kind == "DELETED":
            if worker:
                worker.vanish()
        elif worker:
            worker.update(pod)
        else:
            self._begin(Worker(self._parts, pod))

    def _begin(self, worker: Worker) -> None:
        uid = worker.uid
        self._workers[uid] = worker
        task = asyncio.create_task(worker.run(), name=f"pod {uid}")
        self._tasks[uid] = task
        task.add_done_callback(lambda _: self._end(uid, worker))

    def _end(self, uid: str, worker: Worker) -> None:
        if self._workers.get(uid) is worker:
            del self._workers[uid], self._tasks[uid]

    async def _refresh(self, worker: Worker, free: asyncio.Semaphore) -> None:
        async with free:
            try:
                await worker.refresh()
            except KubeError as error:
                _log.info("pod %s is refreshed later: %s", worker.uid, error)
            except Exception:
                _log.exception("refresh of pod %s", worker.uid)
