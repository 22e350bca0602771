"""Distributes the cluster's Services to running pods: one watch for all, and only differences to each pod.

Services and EndpointSlices are watched and combined into one table (`servicetable`). A pod gets the whole table when
its supervisor connects, before its plan, and later the differences, batched for a moment; each pod has its own task, so
a slow supervisor delays no other. Only the driver `private` has rules in pods; with others, and where the administrator
chose so, an admission policy makes Services headless and annotates them, which becomes an event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import Any

from isthmus.clients.kube.api import Kube, Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.objects import servicetable
from isthmus.kubelet.objects.servicetable import SERVICES, SLICES
from isthmus.kubelet.objects.watching import follow
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.status.recorder import Recorder
from isthmus.model.services import Answering, ServicePort, bounded, changes

# Written by the admission policy, controlplane/objects/headless.yaml.
HEADLESS = "isthmus.io/made-headless"
# Changes within this time are sent as one: endpoints of a Deployment become ready one by one.
GATHER_S = 0.3
# How long a pod's plan waits for the first lists; after that the table is sent later.
FIRST_S = 10.0

_log = logging.getLogger(__name__)


class _Follower:
    """The state of one supervisor's subscription."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.wake = asyncio.Event()
        self.greeted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Services:
    """Watches the cluster's Services and sends them to supervisors.

    Args:
        kube: the API server.
        recorder: of events.
        enabled: whether pods have rules for Services.
        node: the node's address, at which node ports answer; None where they do not.
    """

    def __init__(self, kube: Kube, recorder: Recorder, *, enabled: bool, node: IPv4Address | None = None) -> None:
        self._kube, self._recorder, self._enabled, self._node = kube, recorder, enabled, node
        self._services: dict[str, Object] = {}
        self._slices: dict[str, Object] = {}
        self._listed: set[str] = set()
        self._known = asyncio.Event()
        self._changed = asyncio.Event()
        self._table: dict[ServicePort, Answering] = {}
        self._followers: dict[str, _Follower] = {}
        self._short: list[ServicePort] = []

    async def run(self) -> None:
        """Watch, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(SERVICES, self._services))
            if self._enabled:
                group.create_task(self._follow(SLICES, self._slices))
                group.create_task(self._publish())

    def begin(self, connection: Connection) -> None:
        """Send the table to a supervisor until it disconnects."""
        for uid in [uid for uid, one in self._followers.items() if one.connection.is_closed]:
            self._forget(uid)
        self._forget(connection.uid)
        if self._enabled:
            follower = self._followers[connection.uid] = _Follower(connection)
            follower.task = asyncio.create_task(self._send(follower), name=f"services of pod {connection.uid}")

    async def greeted(self, connection: Connection) -> None:
        """Wait until a supervisor has the whole table; with a time limit, as its pod can start without."""
        follower = self._followers.get(connection.uid)
        if follower is None or follower.connection is not connection:
            return
        try:
            async with asyncio.timeout(FIRST_S):
                await follower.greeted.wait()
        except TimeoutError:
            _log.warning("pod %s starts without Services, which the API server has not listed yet", connection.uid)

    def reported(self, pod: Object, before: dict[str, Any] | None, report: dict[str, Any]) -> None:
        """Record an event of Services that a supervisor could not apply."""
        error = report.get("services_error")
        if error and error != (before or {}).get("services_error"):
            self._recorder.record(pod, Kind.WARNING, EventReason.SERVICES, f"Services may not be reached: {error}")

    async def _follow(self, path: str, known: dict[str, Object]) -> None:
        def listed(found: list[Object]) -> None:
            self._say_headless(found, known)
            known.clear()
            known.update((_key(one), one) for one in found)
            self._listed.add(path)
            self._changed.set()

        def changed(kind: str, one: Object) -> None:
            if kind == "DELETED":
                known.pop(_key(one), None)
            else:
                self._say_headless([one], known)
                known[_key(one)] = one
            self._changed.set()

        await follow(self._kube, path, {}, listed, changed)

    async def _publish(self) -> None:
        """Rebuild the table after a change, and notify the subscribers."""
        while True:
            await self._changed.wait()
            if self._known.is_set():
                await asyncio.sleep(GATHER_S)
            self._changed.clear()
            if self._listed < {SERVICES, SLICES}:
                continue
            table, short = bounded(servicetable.table(self._services.values(), self._slices.values(), self._node))
            if short != self._short:
                left = ", ".join(map(str, short)) or "none"
                _log.warning("too many Services or endpoints; pods lack some of %s", left)
            self._short = short
            if table != self._table or not self._known.is_set():
                self._table = table
                self._known.set()
                for follower in self._followers.values():
                    follower.wake.set()

    async def _send(self, follower: _Follower) -> None:
        await self._known.wait()
        have: dict[ServicePort, Answering] = {}
        whole = True
        while not follower.connection.is_closed:
            follower.wake.clear()
            want = self._table
            new, gone = changes(have, want)
            if whole or new or gone:
                await follower.connection.send({"type": "services", "whole": whole, "set": new, "drop": gone})
            have, whole = want, False
            follower.greeted.set()
            await follower.wake.wait()

    def _forget(self, uid: str) -> None:
        follower = self._followers.pop(uid, None)
        if follower and follower.task:
            follower.task.cancel()

    def _say_headless(self, found: Iterable[Object], before: Mapping[str, Object]) -> None:
        for one in found:
            if _was_made_headless(one) and not _was_made_headless(before.get(_key(one))):
                message = (
                    "It has no address of its own here: its name leads to its pods themselves,"
                    " and port must equal targetPort"
                )
                self._recorder.record(one, Kind.WARNING, EventReason.HEADLESS, message)


def _was_made_headless(one: Object | None) -> bool:
    return one is not None and HEADLESS in (one["metadata"].get("annotations") or {})


def _key(one: Object) -> str:
    return str(one["metadata"]["uid"])
