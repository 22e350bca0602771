"""The state of one pod as it is now, and the only place where it changes.

Whoever observes something notes it here, which wakes the worker; nobody keeps a part of the state of his own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from isthmus.kubelet.pods.decision.actions import Peer, Work
from isthmus.kubelet.pods.decision.state import Held, Pauses, PodState
from isthmus.model.pod_inputs import ImageState, Object, Settings


class Memory:
    """What is known of a pod.

    Args:
        pod: as it was first seen.
        settings: gives those of the cluster.
        others: gives jobs of the pod beside one.
        pauses: how long to wait.
        is_gone: the API has it no more.
    """

    def __init__(
        self,
        pod: dict[str, Any],
        settings: Callable[[], Settings],
        others: Callable[[str, str], list[str]],
        pauses: Pauses,
        *,
        is_gone: bool = False,
    ) -> None:
        self.uid = str(pod["metadata"]["uid"])
        self.changed = asyncio.Event()
        self._settings, self._others = settings, others
        self._pause_s = 0.0
        self._state = PodState(pod, settings(), datetime.now(UTC), 0.0, is_gone=is_gone, pauses=pauses)

    @property
    def kept(self) -> PodState:
        """What was noted, at no moment in particular."""
        return self._state

    def observe(self) -> PodState:
        """Return the state at this moment."""
        number = self._state.number
        return replace(
            self._state,
            settings=self._settings(),
            now=datetime.now(UTC),
            now_s=time.monotonic(),
            others=tuple(self._others(self.uid, number)) if number else (),
        )

    def note(self, **changes: Any) -> None:
        """Note what has changed."""
        self._state = replace(self._state, **changes)
        self.changed.set()

    def note_pod(self, pod: dict[str, Any]) -> None:
        """Note a newer version of the pod; an older one is what a watch still had on its way."""
        if int(pod["metadata"]["resourceVersion"]) >= int(self._state.pod["metadata"]["resourceVersion"]):
            self.note(pod=pod)

    def note_link(self, peer: Peer, **changes: Any) -> None:
        """Note what a supervisor was told, unless another one has come meanwhile."""
        link = self._state.link
        if link is not None and link.peer == peer:
            self.note(link=replace(link, **changes))

    def drop_link(self, peer: Peer) -> None:
        """Note that a supervisor has gone; another may be there already."""
        link = self._state.link
        if link is not None and link.peer == peer:
            self.note(link=None)

    def hold(self, status: Object | None, pauses: tuple[float, float]) -> None:
        """Note that the pod must wait, longer each time in a row.

        Args:
            status: to show meanwhile; None leaves what is shown.
            pauses: the first and the longest pause, seconds.
        """
        first_s, longest_s = pauses
        self._pause_s = min(max(self._pause_s * 2, first_s), longest_s)
        self.note(held=Held(time.monotonic() + self._pause_s, status), prepared=None)

    def forget_done(self, wanted: frozenset[Work]) -> None:
        """Forget work that has ended and is wanted no more: it may be wanted again."""
        if self._state.done - wanted:
            self._state = replace(self._state, done=self._state.done & wanted)

    def note_images(self, states: Mapping[str, ImageState]) -> None:
        """Note where images of containers stand."""
        self.note(images={**self._state.images, **states})
