"""The scheduler's remaining duty: bind pods whose scheduling gates were removed.

All other pods are bound at creation by an admission policy; a gated pod may not have a node yet.
"""

from __future__ import annotations

import asyncio
import logging

from isthmus.clients.kube.api import ConflictError, Kube, KubeError, NotFoundError, Object
from isthmus.kubelet.objects.watching import follow

_AGAIN_S = 5.0
_SCHEDULER = "default-scheduler"

_log = logging.getLogger(__name__)


class Gates:
    """Binds pods to the one node.

    Args:
        kube: the API server.
        node: name of the node object.
    """

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube, self._node = kube, node
        self._open: dict[str, Object] = {}
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

    def _changed(self, kind: str, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or not is_open(pod):
            self._open.pop(uid, None)
        else:
            self._open[uid] = pod
            self._wake.set()

    async def _bind_all(self) -> None:
        while True:
            self._wake.clear()
            for pod in [*self._open.values()]:
                try:
                    await self._bind(pod)
                    self._open.pop(pod["metadata"]["uid"], None)
                except KubeError as error:
                    _log.warning("a pod is not bound yet: %s", error)
            try:
                async with asyncio.timeout(_AGAIN_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _bind(self, pod: Object) -> None:
        meta = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "uid": meta["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._node},
        }
        try:
            await self._kube.create(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding", binding)
        except (ConflictError, NotFoundError) as error:
            _log.info("a pod was bound or has gone meanwhile: %s", error)


def is_open(pod: Object) -> bool:
    """Return whether a pod without a node can be bound."""
    spec = pod["spec"]
    ours = spec.get("schedulerName", _SCHEDULER) == _SCHEDULER
    return bool(ours and not spec.get("schedulingGates") and not pod["metadata"].get("deletionTimestamp"))
