"""The event recorder: one task writes events, and aggregates repeated ones into a count.

Recording never blocks, and events are best effort: when the queue is full, new ones are dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime

from isthmus.clients.kube.api import Kube, KubeError, NotFoundError, Object, Patch
from isthmus.kubelet.status.events import Event, Kind

_REMEMBERED = 2000
# Limit of different messages of one reason and object within `Timing.same_s`; a probe's messages always differ.
_SIMILAR = 10
_MESSAGE_CHARS = 1024
# Characters of the object's name in the event's name.
_NAME_CHARS = 230

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """When events are written, and how many wait.

    Attributes:
        same_s: equal events within this time are aggregated into a count.
        again_s: between two writes of the count.
        waiting: length of the queue.
    """

    same_s: float = 600.0
    again_s: float = 5.0
    waiting: int = 1000


@dataclass
class _Written:
    path: str
    count: int
    at_s: float


class Recorder:
    """Records events.

    Args:
        kube: the API server.
        node: name of the node object.
        timing: of writes.
    """

    def __init__(self, kube: Kube, node: str, timing: Timing | None = None) -> None:
        self._kube, self._node, self._timing = kube, node, timing or Timing()
        self._queue: asyncio.Queue[tuple[Object, Event]] = asyncio.Queue(self._timing.waiting)
        self._written: OrderedDict[tuple[str, str, str, str], _Written] = OrderedDict()
        self._similar: OrderedDict[tuple[str, str, str], list[float]] = OrderedDict()
        self._last_ns = 0
        self._lost = 0

    def record(self, about: Object, kind: Kind, reason: str, message: str, place: str = "") -> None:
        """Queue an event about an object; never blocks."""
        try:
            self._queue.put_nowait((about, Event(kind, reason, message[:_MESSAGE_CHARS], place)))
        except asyncio.QueueFull:
            self._lost += 1

    async def run(self) -> None:
        """Write queued events, for ever."""
        while True:
            about, event = await self._queue.get()
            if self._lost and self._queue.empty():
                _log.warning("%d events were dropped: the queue was full", self._lost)
                self._lost = 0
            try:
                await self._write(about, event)
            except KubeError as error:
                _log.info("an event was not written: %s", error)

    async def _write(self, about: Object, event: Event) -> None:
        kind = (about["metadata"]["uid"], event.reason, event.place)
        key = (*kind, event.message)
        before = self._written.get(key)
        age_s = time.monotonic() - before.at_s if before else self._timing.same_s
        if before and age_s < self._timing.same_s:
            before.count += 1
            if age_s < self._timing.again_s or await self._count(before):
                return
        elif self._too_many(kind):
            return
        made = await self._kube.create(_path(about), self._event(about, event))
        self._written[key] = _Written(f"{_path(about)}/{made['metadata']['name']}", 1, time.monotonic())
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _too_many(self, kind: tuple[str, str, str]) -> bool:
        """Count an event with a new message; return whether its kind exceeds the rate limit."""
        now = time.monotonic()
        lately = [at_s for at_s in self._similar.pop(kind, []) if now - at_s < self._timing.same_s]
        self._similar[kind] = lately
        while len(self._similar) > _REMEMBERED:
            self._similar.popitem(last=False)
        if len(lately) >= _SIMILAR:
            return True
        lately.append(now)
        return False

    async def _count(self, written: _Written) -> bool:
        """Update the count; return whether the event still exists."""
        written.at_s = time.monotonic()
        try:
            await self._kube.patch(written.path, {"count": written.count, "lastTimestamp": _now()}, Patch.MERGE)
        except NotFoundError:
            return False
        return True

    def _event(self, about: Object, event: Event) -> Object:
        meta, space = about["metadata"], about["metadata"].get("namespace") or "default"
        subject = {"apiVersion": "v1", "kind": about.get("kind") or "Pod", "namespace": space}
        subject |= {key: meta[key] for key in ("name", "uid", "resourceVersion") if key in meta}
        if event.place:
            subject["fieldPath"] = event.place
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self._name(meta["name"]), "namespace": space},
            "involvedObject": subject,
            "type": event.kind,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": "kubelet", "host": self._node},
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
            "firstTimestamp": _now(),
            "lastTimestamp": _now(),
            "count": 1,
        }

    def _name(self, about: str) -> str:
        """Return a name that sorts after earlier ones: lists order events of one second by name."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return f"{about[:_NAME_CHARS].rstrip('-.')}.{self._last_ns:x}"


def _path(about: Object) -> str:
    return f"/api/v1/namespaces/{about['metadata'].get('namespace') or 'default'}/events"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
