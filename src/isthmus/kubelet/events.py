"""What `kubectl describe` shows below a pod: events, written by one task, repeated ones counted and not written anew.

Nobody waits for an event, and none is worth more than the work it tells of: when too many wait, new ones are dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from isthmus.clients.kube import Kube, KubeError, NotFoundError, Object, Patch

_WAITING = 1000
# Equal ones within this time are one, whose count grows; but not more often than every few seconds.
_SAME_S = 600.0
_AGAIN_S = 5.0
_REMEMBERED = 2000
_MESSAGE_CHARS = 1024

_log = logging.getLogger(__name__)


class Kind(StrEnum):
    """Kinds of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass
class _Written:
    path: str
    count: int
    at_s: float


class Events:
    """Events of this node.

    Args:
        kube: takes them.
        node: name of the node object.
    """

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube, self._node = kube, node
        self._queue: asyncio.Queue[tuple[Object, Kind, str, str]] = asyncio.Queue(_WAITING)
        self._written: OrderedDict[tuple[str, str, str], _Written] = OrderedDict()

    def tell(self, about: Object, kind: Kind, reason: str, message: str) -> None:
        """Tell of an object; returns at once."""
        try:
            self._queue.put_nowait((about, kind, reason, message[:_MESSAGE_CHARS]))
        except asyncio.QueueFull:
            _log.info("too many events: %s %s", reason, message)

    async def run(self) -> None:
        """Write what is told."""
        while True:
            about, kind, reason, message = await self._queue.get()
            try:
                await self._write(about, kind, reason, message)
            except KubeError as error:
                _log.info("an event is lost: %s", error)

    async def _write(self, about: Object, kind: Kind, reason: str, message: str) -> None:
        meta = about["metadata"]
        key = (meta["uid"], reason, message)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        before = self._written.get(key)
        age_s = time.monotonic() - before.at_s if before else _SAME_S
        if before and age_s < _AGAIN_S:
            before.count += 1
            return
        if before and age_s < _SAME_S:
            before.count, before.at_s = before.count + 1, time.monotonic()
            try:
                body = {"count": before.count, "lastTimestamp": now}
                await self._kube.patch(before.path, body, Patch.MERGE)
                return
            except NotFoundError:
                del self._written[key]
        space = meta.get("namespace") or "default"
        made = await self._kube.create(
            f"/api/v1/namespaces/{space}/events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{meta['name']}.", "namespace": space},
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": about.get("kind") or "Pod",
                    "name": meta["name"],
                    "namespace": space,
                    "uid": meta["uid"],
                    "resourceVersion": meta.get("resourceVersion", ""),
                },
                "type": kind,
                "reason": reason,
                "message": message,
                "source": {"component": "kubelet", "host": self._node},
                "reportingComponent": "kubelet",
                "reportingInstance": self._node,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )
        path = f"/api/v1/namespaces/{space}/events/{made['metadata']['name']}"
        self._written[key] = _Written(path, 1, time.monotonic())
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
