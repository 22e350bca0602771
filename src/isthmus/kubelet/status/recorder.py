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

from isthmus.clients.kube.api import Kube, KubeError, NotFoundError, Object, Patch
from isthmus.kubelet.status.events import Event, Kind

_WAITING = 1000
# Equal ones within this time are one, whose count grows; but not more often than every few seconds.
_SAME_S = 600.0
_AGAIN_S = 5.0
_REMEMBERED = 2000
# Of one kind, about one thing, so many that differ in their words within that time; a probe's may always differ.
_SIMILAR = 10
_MESSAGE_CHARS = 1024
# Of the name of what an event is about, so that its own is not too long.
_NAME_CHARS = 230

_log = logging.getLogger(__name__)


@dataclass
class _Written:
    path: str
    count: int
    at_s: float


class Recorder:
    """Writes events.

    Args:
        kube: takes them.
        node: name of the node object.
    """

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube, self._node = kube, node
        self._queue: asyncio.Queue[tuple[Object, Event]] = asyncio.Queue(_WAITING)
        self._written: OrderedDict[tuple[str, str, str, str], _Written] = OrderedDict()
        self._similar: OrderedDict[tuple[str, str, str], list[float]] = OrderedDict()
        self._last_ns = 0
        self._lost = 0

    def tell(self, about: Object, kind: Kind, reason: str, message: str, place: str = "") -> None:
        """Tell of an object; returns at once."""
        try:
            self._queue.put_nowait((about, Event(kind, reason, message[:_MESSAGE_CHARS], place)))
        except asyncio.QueueFull:
            self._lost += 1

    async def run(self) -> None:
        """Write what is told."""
        while True:
            about, event = await self._queue.get()
            if self._lost and self._queue.empty():
                _log.warning("%d events were too many at once, and are lost", self._lost)
                self._lost = 0
            try:
                await self._write(about, event)
            except KubeError as error:
                _log.info("an event is lost: %s", error)

    async def _write(self, about: Object, event: Event) -> None:
        kind = (about["metadata"]["uid"], event.reason, event.place)
        key = (*kind, event.message)
        before = self._written.get(key)
        age_s = time.monotonic() - before.at_s if before else _SAME_S
        if before and age_s < _SAME_S:
            before.count += 1
            if age_s < _AGAIN_S or await self._count(before):
                return
        elif self._too_many(kind):
            return
        made = await self._kube.create(_path(about), self._event(about, event))
        self._written[key] = _Written(f"{_path(about)}/{made['metadata']['name']}", 1, time.monotonic())
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _too_many(self, kind: tuple[str, str, str]) -> bool:
        """Count an event that is new in its words; return whether there were too many of its kind lately."""
        now = time.monotonic()
        lately = [at_s for at_s in self._similar.pop(kind, []) if now - at_s < _SAME_S]
        self._similar[kind] = lately
        while len(self._similar) > _REMEMBERED:
            self._similar.popitem(last=False)
        if len(lately) >= _SIMILAR:
            return True
        lately.append(now)
        return False

    async def _count(self, written: _Written) -> bool:
        """Write a new count; return whether the event is still there."""
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
        """Return a name that comes after those of earlier events: of one second, lists show them by name."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return f"{about[:_NAME_CHARS].rstrip('-.')}.{self._last_ns:x}"


def _path(about: Object) -> str:
    return f"/api/v1/namespaces/{about['metadata'].get('namespace') or 'default'}/events"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
