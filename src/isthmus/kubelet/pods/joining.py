"""Ephemeral containers: each is told to the supervisor once, which leaves alone what it has already.

One whose image takes long, or cannot be had, holds up neither its pod nor another.
"""

from __future__ import annotations

import asyncio

from isthmus.kubelet.admit import containers as refusals_containers
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods import ephemeral
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.translate import pod as translate
from isthmus.podproto.plan import Container, to_json


class Joining:
    """The ephemeral containers of one pod.

    Args:
        parts: the rest of the kubelet.
        worker: the pod's.
    """

    def __init__(self, parts: Parts, worker: ephemeral.Pod) -> None:
        self._parts, self._worker = parts, worker
        self._refused: set[str] = set()
        self._tasks: dict[str, tuple[Connection, asyncio.Task[None]]] = {}

    def look(self, connection: Connection) -> None:
        """Begin with those that are new."""
        for name, (told, task) in [*self._tasks.items()]:
            if told is not connection:
                task.cancel()
                del self._tasks[name]
        known = self._refused | self._tasks.keys() | ((self._worker.report or {}).get("containers") or {}).keys()
        for one in self._worker.pod["spec"].get("ephemeralContainers") or ():
            if one["name"] not in known:
                self._begin(connection, one["name"])

    def end(self) -> None:
        """Do nothing more."""
        for _, task in self._tasks.values():
            task.cancel()

    def _begin(self, connection: Connection, name: str) -> None:
        pod = self._worker.pod
        if problems := refusals_containers.ephemeral(pod, name, self._parts.settings):
            self._refused.add(name)
            self._parts.recorder.tell(pod, Kind.WARNING, "UnsupportedPod", "; ".join(problems))
            return
        task = asyncio.create_task(self._join(connection, name), name=f"ephemeral {connection.uid} {name}")
        self._tasks[name] = (connection, task)

    async def _join(self, connection: Connection, name: str) -> None:
        async def send(made: Container | None) -> None:
            if made is not None:
                target = translate.target(self._worker.pod, name)
                await connection.send({"type": "ephemeral", "container": to_json(made), "target": target})

        await ephemeral.provide(self._parts, self._worker, connection, name, send)
