"""The images of one pod: asked for all at once; those that take long are told of, as Kubernetes' users expect.

An image that is there costs neither event nor status. The pull itself belongs to the cache: it goes on when the pod
that asked first is deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from isthmus.clients.kube import Object
from isthmus.kubelet import status
from isthmus.kubelet.events import Kind
from isthmus.kubelet.images import ImageWaitError
from isthmus.kubelet.parts import Parts
from isthmus.model.pod_inputs import Image, ImageState

KINDS = ("initContainers", "containers", "ephemeralContainers")
Show = Callable[[Object], Awaitable[Object]]


class Pulls:
    """The images of a pod's containers, from the question to the answers.

    Args:
        parts: the rest of the kubelet.
        pod: the pod.
        secrets: its pull secrets.
    """

    def __init__(self, parts: Parts, pod: Object, secrets: list[Object]) -> None:
        self._parts, self._pod = parts, pod
        self._begun_s = time.monotonic()
        self._containers = [(kind, one) for kind in KINDS for one in pod["spec"].get(kind) or ()]
        self._asked = [asyncio.ensure_future(parts.images.get(one, secrets)) for _, one in self._containers]
        self._late: set[int] = set()

    async def shown(self, show: Show) -> Object:
        """Wait a moment, and show what takes longer.

        Args:
            show: writes a status; returns the pod that has it.

        Returns:
            the pod, as it is now.
        """
        if self._asked:
            await asyncio.wait(self._asked, timeout=self._parts.pauses.pull)
        self._late = {number for number, task in enumerate(self._asked) if not task.done()}
        if not self._late:
            return self._pod
        for number in self._late:
            self._tell(number, "Pulling", "Pulling image {}")
        return await show(status.pod_status(self._pod, None, None, {}, datetime.now(UTC)))

    async def answers(self) -> tuple[dict[str, Image], dict[str, ImageState], list[ImageWaitError]]:
        """Return the images as containers write them, where each container's stands, and why some are not there."""
        images: dict[str, Image] = {}
        states: dict[str, ImageState] = {}
        waits: list[ImageWaitError] = []
        for number, (_, one) in enumerate(self._containers):
            try:
                images[one["image"]] = found = await self._asked[number]
                states[one["name"]] = ImageState(id=found.id)
            except ImageWaitError as error:
                states[one["name"]] = error.state
                waits.append(error)
                continue
            if number in self._late:
                self._tell(number, "Pulled", f"Pulled image {{}} in {time.monotonic() - self._begun_s:.1f}s")
        return images, states, waits

    def end(self) -> None:
        """Ask no more."""
        for task in self._asked:
            task.cancel()

    def _tell(self, number: int, reason: str, message: str) -> None:
        kind, one = self._containers[number]
        place = f"spec.{kind}{{{one['name']}}}"
        self._parts.recorder.tell(self._pod, Kind.NORMAL, reason, message.format(f'"{one["image"]}"'), place)
