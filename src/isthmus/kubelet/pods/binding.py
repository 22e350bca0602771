"""The scheduler's remaining duty: bind pods that the admission policy (controlplane/objects/binding.yaml) leaves alone.

These are pods whose scheduling gates were removed, and pods with a node selector or node affinity. Of the latter, one
that no Slurm node and no label of the node object meets stays `Pending` with an event `FailedScheduling`, as with
Kubernetes' own scheduler, until a node or a label is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from isthmus.clients.kube.api import ConflictError, Kube, KubeError, NotFoundError, Object, Patch
from isthmus.kubelet.objects.config import Config
from isthmus.kubelet.objects.watching import follow
from isthmus.kubelet.slurm.placing import place
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.status.recorder import Recorder

_AGAIN_S = 5.0
_SCHEDULER = "default-scheduler"
_UNSCHEDULABLE = "Unschedulable"

_log = logging.getLogger(__name__)


class Binder:
    """Binds pods to the one node.

    Args:
        kube: the API server.
        config: has the node's labels and Slurm's nodes and features.
        recorder: of events.
        labels: reads the node object's labels into `config`.
    """

    def __init__(self, kube: Kube, config: Config, recorder: Recorder, labels: Callable[[], Awaitable[None]]) -> None:
        self._kube, self._config, self._recorder, self._labels = kube, config, recorder, labels
        self._open: dict[str, Object] = {}
        # UID -> the problem that was published.
        self._shown: dict[str, str] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Watch pods without a node, and bind them."""
        async with asyncio.TaskGroup() as group:
            unbound = {"fieldSelector": "spec.nodeName="}
            group.create_task(follow(self._kube, "/api/v1/pods", unbound, self._listed, self._changed))
            group.create_task(self._bind_all())

    def _listed(self, pods: list[Object]) -> None:
        self._open = {}
        for pod in pods:
            self._changed("ADDED", pod)
        self._shown = {uid: problem for uid, problem in self._shown.items() if uid in self._open}

    def _changed(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or not is_open(pod):
            self._forget(uid)
        else:
            # What is published of an unschedulable pod comes back here: it is no reason to look again.
            if uid not in self._shown:
                self._wake.set()
            self._open[uid] = pod

    def _forget(self, uid: str) -> None:
        self._open.pop(uid, None)
        self._shown.pop(uid, None)

    async def _bind_all(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look([*self._open.values()])
            except KubeError as error:
                _log.warning("pods without a node are not bound yet: %s", error)
            try:
                async with asyncio.timeout(_AGAIN_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look(self, pods: list[Object]) -> None:
        """Bind those of the pods that can be placed; the node's labels and Slurm are asked once for all."""
        if pods:
            await self._labels()
        if any(self._problems(pod) for pod in pods if pod["metadata"]["uid"] not in self._shown):
            await self._config.renew()
        for pod in pods:
            try:
                if problems := self._problems(pod):
                    await self._show(pod, problems)
                else:
                    await self._bind(pod)
                    self._forget(pod["metadata"]["uid"])
            except KubeError as error:
                _log.warning("a pod is not bound yet: %s", error)

    def _problems(self, pod: Object) -> str:
        return "; ".join(place(pod, self._config.settings).problems)

    async def _show(self, pod: Object, problems: str) -> None:
        meta = pod["metadata"]
        if self._shown.get(meta["uid"]) == problems:
            return
        self._recorder.record(pod, Kind.WARNING, EventReason.SCHEDULING, problems)
        condition = {"type": "PodScheduled", "status": "False", "reason": _UNSCHEDULABLE, "message": problems}
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        changed = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
        try:
            await self._kube.patch(path, changed, Patch.STRATEGIC)
            self._shown[meta["uid"]] = problems
        except (ConflictError, NotFoundError) as error:
            _log.info("a pod was bound or has gone meanwhile: %s", error)

    async def _bind(self, pod: Object) -> None:
        meta = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._config.settings.node},
        }
        try:
            await self._kube.create(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding", binding)
        except (ConflictError, NotFoundError) as error:
            _log.info("a pod was bound or has gone meanwhile: %s", error)


def is_open(pod: Object) -> bool:
    """Return whether a pod without a node may be bound."""
    spec = pod["spec"]
    ours = spec.get("schedulerName", _SCHEDULER) == _SCHEDULER
    return bool(ours and not spec.get("schedulingGates") and not pod["metadata"].get("deletionTimestamp"))
