"""Containers that a running pod gets later: their images are pulled beside all else, then the supervisor is told."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from isthmus.clients.kube.api import KubeError, Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.images.manager import ImageWaitError
from isthmus.kubelet.images.pulls import Pulls, needs
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import ImageState
from isthmus.podproto.plan import Container

_log = logging.getLogger(__name__)


class Pod(Protocol):
    """What is known of the pod."""

    pod: Object
    report: dict[str, Any] | None
    states: dict[str, ImageState]

    def wake(self) -> None:
        """Have the worker look."""


Send = Callable[[Container | None], Awaitable[None]]


async def provide(parts: Parts, worker: Pod, connection: Connection, name: str, send: Send) -> None:
    """Tell a supervisor of a container, as soon as its images are there, and show what it waits for.

    Args:
        parts: the rest of the kubelet.
        worker: the pod's.
        connection: the supervisor; when it has gone, nothing more is done.
        name: of the container.
        send: takes the container, and before that None each time it must wait.
    """
    pause_s, longest_s = parts.pauses.retry
    while not connection.is_closed:
        wait_s, pause_s = pause_s, min(pause_s * 2, longest_s)
        try:
            await send(await _made(parts, worker, name))
            return
        except ImageWaitError as error:
            wait_s = error.retry_s
            await _hold(worker, name, error.state, send)
        except UnreadyError as error:
            await _hold(worker, name, ImageState(error.reason, error.message), send)
        except KubeError as error:
            _log.info("container %s of pod %s must wait: %s", name, connection.uid, error)
        except Exception as error:
            _log.exception("container %s of pod %s", name, connection.uid)
            parts.recorder.tell(worker.pod, Kind.WARNING, "KubeletError", repr(error))
        await asyncio.sleep(wait_s)


async def _made(parts: Parts, worker: Pod, name: str) -> Container:
    pod, since_s = worker.pod, time.monotonic()
    wanted = [need for need in needs(pod) if name in need.waits]
    pulls = Pulls(parts, pod, await parts.config.pull_secrets(pod, since_s), wanted)
    try:
        await pulls.are_late()
        images, states, waits = await pulls.answers()
    finally:
        pulls.end()
    if waits:
        raise waits[0]
    made = translate.single(pod, name, await parts.config.resolve(pod, images, since_s))
    worker.states.update(states)
    return made


async def _hold(worker: Pod, name: str, state: ImageState, send: Send) -> None:
    worker.states[name] = state
    await send(None)
    worker.wake()
