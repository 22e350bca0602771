"""The images of one pod, including image volumes: pulled concurrently, with events for slow pulls.

A cached image causes neither event nor status update. The pull belongs to the cache: it continues when the pod
that requested it first is deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from isthmus.clients.kube.api import Object
from isthmus.kubelet.images.manager import ImageWaitError
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.volumes import registry as volumes
from isthmus.model.pod_inputs import Image, ImageState

KINDS = ("initContainers", "containers", "ephemeralContainers")
Show = Callable[[Object], Awaitable[Object]]


@dataclass(frozen=True, slots=True)
class Need:
    """An image that a pod needs.

    Attributes:
        asks: a container, or the same fields for a volume: `image`, and perhaps `imagePullPolicy`.
        place: the part of the pod that events are about; empty for the whole.
        waits: names of the containers that cannot start without it.
        own: the container that runs it; empty for a volume.
    """

    asks: Object
    place: str
    waits: tuple[str, ...]
    own: str = ""


def needs(pod: Object) -> list[Need]:
    """Return the images of a pod: those of volumes last, since a container's own comes first in its status."""
    containers = [(kind, one) for kind in KINDS for one in pod["spec"].get(kind) or ()]
    found = [Need(one, f"spec.{kind}{{{one['name']}}}", (one["name"],), one["name"]) for kind, one in containers]
    for name, image in volumes.images(pod):
        users = [one["name"] for _, one in containers if name in _mounted(one)]
        found.append(Need(dict(image), "", tuple(users)))
    return found


def _mounted(container: Object) -> set[str]:
    return {mount["name"] for mount in container.get("volumeMounts") or ()}


class Pulls:
    """The pulls of a pod's images.

    Args:
        parts: the rest of the kubelet.
        pod: the pod.
        secrets: its pull secrets.
        wanted: images of it; None for all.
    """

    def __init__(self, parts: Parts, pod: Object, secrets: list[Object], wanted: list[Need] | None = None) -> None:
        self._parts, self._pod = parts, pod
        self._begun_s = time.monotonic()
        self._needs = needs(pod) if wanted is None else wanted
        self._asked = [asyncio.ensure_future(parts.images.get(need.asks, secrets)) for need in self._needs]
        self._late: set[int] = set()

    async def shown(self, show: Show) -> Object:
        """Wait a moment, then publish which images are still being pulled.

        Args:
            show: writes a status; returns the pod that has it.

        Returns:
            the pod, as it is now.
        """
        if not await self.are_late():
            return self._pod
        return await show(status.pod_status(self._pod, None, None, self._failures(), datetime.now(UTC)))

    def _failures(self) -> dict[str, ImageState]:
        """Return the last failures of images that are retried; a failure stays until the image is pulled."""
        late = [self._needs[number] for number in self._late]
        known = {need.own: self._parts.images.failure(need.asks.get("image") or "") for need in late if need.own}
        return {name: state for name, state in known.items() if state is not None}

    async def are_late(self) -> bool:
        """Wait a moment, then record events for slow pulls; return whether there are any."""
        if self._asked:
            await asyncio.wait(self._asked, timeout=self._parts.pauses.pull)
        self._late = {number for number, task in enumerate(self._asked) if not task.done()}
        for number in self._late:
            self._record(number, EventReason.PULLING, "Pulling image {}")
        return bool(self._late)

    async def answers(self) -> tuple[dict[str, Image], dict[str, ImageState], list[ImageWaitError]]:
        """Return the images by name, the state of each container's, and why some are not ready."""
        images: dict[str, Image] = {}
        states: dict[str, ImageState] = {}
        waits: list[ImageWaitError] = []
        for number, need in enumerate(self._needs):
            try:
                images[need.asks["image"]] = found = await self._asked[number]
                if need.own:
                    states[need.own] = ImageState(id=found.id)
            except ImageWaitError as error:
                for name in need.waits:
                    known = states.get(name, ImageState())
                    states[name] = known if known.reason else replace(error.state, id=known.id)
                waits.append(error)
                continue
            if number in self._late:
                self._record(
                    number, EventReason.PULLED, f"Pulled image {{}} in {time.monotonic() - self._begun_s:.1f}s"
                )
        return images, states, waits

    def end(self) -> None:
        """Cancel the requests."""
        for task in self._asked:
            task.cancel()

    def _record(self, number: int, reason: str, message: str) -> None:
        need = self._needs[number]
        words = message.format(f'"{need.asks["image"]}"')
        self._parts.recorder.record(self._pod, Kind.NORMAL, reason, words, need.place)
