"""Containers of a running pod whose image was changed: the new one is pulled, then the supervisor is told.

What runs is in the supervisor's report, so a kubelet that begins anew finds the same difference and says the same. An
image that cannot be had is told too: the container ends, as with the official kubelet, and waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from isthmus.clients.kube import KubeError, Object
from isthmus.kubelet import translate
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.events import Kind
from isthmus.kubelet.images import ImageWaitError
from isthmus.kubelet.parts import Parts
from isthmus.kubelet.pulls import Pulls, needs
from isthmus.kubelet.unready import UnreadyError
from isthmus.model.plan import Container, Plan, to_json
from isthmus.model.pod_inputs import ImageState

_KINDS = ("initContainers", "containers")
_LIVING = ("waiting", "running")

_log = logging.getLogger(__name__)


class Pod(Protocol):
    """What is known of the pod."""

    pod: Object
    report: dict[str, Any] | None
    states: dict[str, ImageState]

    def wake(self) -> None:
        """Have the worker look."""


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

    def __init__(self, parts: Parts, worker: Pod) -> None:
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
        pause_s, longest_s = self._parts.pauses.retry
        while not connection.is_closed:
            wait_s, pause_s = pause_s, min(pause_s * 2, longest_s)
            try:
                made = await self._made(name)
                await connection.send({"type": "replace", "name": name, "container": to_json(made)})
                return
            except ImageWaitError as error:
                wait_s = error.retry_s
                await self._hold(connection, name, error.state)
            except UnreadyError as error:
                await self._hold(connection, name, ImageState(error.reason, error.message))
            except KubeError as error:
                _log.info("container %s of pod %s keeps its image for now: %s", name, connection.uid, error)
            except Exception as error:
                _log.exception("image of pod %s", connection.uid)
                self._parts.recorder.tell(self._worker.pod, Kind.WARNING, "KubeletError", repr(error))
            await asyncio.sleep(wait_s)

    async def _made(self, name: str) -> Container:
        pod = self._worker.pod
        [need] = [one for one in needs(pod) if one.own == name]
        pulls = Pulls(self._parts, pod, await self._parts.config.pull_secrets(pod), [need])
        try:
            await pulls.are_late()
            images, states, waits = await pulls.answers()
        finally:
            pulls.end()
        if waits:
            raise waits[0]
        made = translate.single(pod, name, await self._parts.config.resolve(pod, images))
        self._worker.states.update(states)
        return made

    async def _hold(self, connection: Connection, name: str, state: ImageState) -> None:
        """Have a container end, and show what it waits for."""
        self._worker.states[name] = state
        await connection.send({"type": "replace", "name": name, "container": None})
        self._worker.wake()
