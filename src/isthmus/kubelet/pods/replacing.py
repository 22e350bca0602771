"""Containers of a running pod whose image was changed: the new one is pulled, then the supervisor is told.

What runs is in the supervisor's report, so a kubelet that begins anew finds the same difference and says the same. An
image that cannot be had is told too: the container ends, as with the official kubelet, and waits for it.
"""

from __future__ import annotations

import asyncio

from isthmus.clients.kube.api import Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.pods import ephemeral
from isthmus.kubelet.pods.parts import Parts
from isthmus.podproto.plan import Container, Plan, to_json

_KINDS = ("initContainers", "containers")
_LIVING = ("waiting", "running")


def changed(pod: Object, report: Object | None) -> dict[str, str]:
    """Return the containers that live and are not of the image that the pod says: name -> what it says.

    One that has ended is what it was. Supervisors of before the names of images were reported tell nothing.
    """
    if report is None or report.get("phase") in ("stopping", "ended") or pod["metadata"].get("deletionTimestamp"):
        return {}
    found = {}
    for one in (one for kind in _KINDS for one in pod["spec"].get(kind) or ()):
        told = report["containers"].get(one["name"]) or {}
        if told.get("state") in _LIVING and told.get("image_name") not in (None, one.get("image")):
            found[one["name"]] = one["image"]
    return found


def is_current(plan: Plan, pod: Object) -> bool:
    """Tell whether a plan, perhaps of a while ago, has the images that the pod says."""
    wanted = {one["name"]: one.get("image") for kind in _KINDS for one in pod["spec"].get(kind) or ()}
    return all(wanted.get(one.name) == one.image_name for one in (*plan.init, *plan.containers))


class Replacing:
    """The changed images of one pod.

    Args:
        parts: the rest of the kubelet.
        worker: the pod's.
    """

    def __init__(self, parts: Parts, worker: ephemeral.Pod) -> None:
        self._parts, self._worker = parts, worker
        self._tasks: dict[str, tuple[Connection, str, asyncio.Task[None]]] = {}

    def look(self, connection: Connection) -> None:
        """Begin with what has changed, once for each image; give up what is wanted no more."""
        wanted = changed(self._worker.pod, self._worker.report)
        for name, (told, image, task) in [*self._tasks.items()]:
            if told is not connection or wanted.get(name) != image:
                task.cancel()
                del self._tasks[name]
        for name in wanted.keys() - self._tasks.keys():
            task = asyncio.create_task(self._replace(connection, name), name=f"image of {connection.uid} {name}")
            self._tasks[name] = (connection, wanted[name], task)

    def end(self) -> None:
        """Do nothing more."""
        for _, _, task in self._tasks.values():
            task.cancel()

    async def _replace(self, connection: Connection, name: str) -> None:
        async def send(made: Container | None) -> None:
            told = None if made is None else to_json(made)
            await connection.send({"type": "replace", "name": name, "container": told})

        await ephemeral.provide(self._parts, self._worker, connection, name, send)
