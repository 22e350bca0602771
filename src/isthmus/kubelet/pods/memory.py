"""The mutable state of one pod, and the only place where it changes.

Every observation is stored here, which wakes the worker; no other module keeps a part of the state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from isthmus.kubelet.metrics import StartTimes
from isthmus.kubelet.pods.decision.actions import Peer, Work
from isthmus.kubelet.pods.decision.state import Held, Pauses, PodState
from isthmus.model.pod_inputs import ImageState, Object, PodSettings
from isthmus.support.backoff import Backoff


class Memory:
    """What is known of a pod.

    Args:
        pod: as it was first seen.
        settings: gives those of the cluster.
        others: returns the pod's other jobs.
        pauses: delays.
        is_gone: the API has it no more.

    Attributes:
        start: measures how long the pod takes to start.
    """

    def __init__(
        self,
        pod: dict[str, Any],
        settings: Callable[[], PodSettings],
        others: Callable[[str, str], list[str]],
        pauses: Pauses,
        *,
        is_gone: bool = False,
    ) -> None:
        self.uid = str(pod["metadata"]["uid"])
        self.changed = asyncio.Event()
        self.start = StartTimes()
        self._settings, self._others = settings, others
        self._backoff, self._pauses = Backoff(*pauses.retry), pauses.retry
        self._state = PodState(pod, settings(), datetime.now(UTC), 0.0, is_gone=is_gone, pauses=pauses)

    @property
    def kept(self) -> PodState:
        """The stored fields, without a timestamp."""
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
        """Store changed fields and wake the worker."""
        self._state = replace(self._state, **changes)
        self.changed.set()

    def note_pod(self, pod: dict[str, Any]) -> None:
        """Store a newer version of the pod; a watch may still deliver an older one."""
        if int(pod["metadata"]["resourceVersion"]) >= int(self._state.pod["metadata"]["resourceVersion"]):
            self.note(pod=pod)

    def note_link(self, peer: Peer, **changes: Any) -> None:
        """Store what was sent to a supervisor, unless another one has connected meanwhile."""
        link = self._state.link
        if link is not None and link.peer == peer:
            self.note(link=replace(link, **changes))

    def drop_link(self, peer: Peer) -> None:
        """Store that a supervisor has disconnected; another may be connected already."""
        link = self._state.link
        if link is not None and link.peer == peer:
            self.note(link=None)

    def hold(self, status: Object | None, pauses: tuple[float, float]) -> None:
        """Hold the pod back, with a backoff for each kind of pauses.

        Args:
            status: to show meanwhile; None leaves what is shown.
            pauses: the first and the longest pause, seconds.
        """
        if pauses != self._pauses:
            self._backoff, self._pauses = Backoff(*pauses), pauses
        self.note(held=Held(time.monotonic() + self._backoff.next_s(), status), prepared=None)

    def forget_done(self, wanted: frozenset[Work]) -> None:
        """Forget finished work that is no longer desired, so that it can be started again."""
        if self._state.done - wanted:
            self._state = replace(self._state, done=self._state.done & wanted)

    def note_images(self, states: Mapping[str, ImageState]) -> None:
        """Store the state of containers' images."""
        self.note(images={**self._state.images, **states})
