"""Long-running work for one pod: resolving references, pulling images, sending later containers to the supervisor.

The worker starts and cancels it. A failure is recorded in the pod's state or retried while the work is desired.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, assert_never

from isthmus.clients.kube.api import KubeError, Object
from isthmus.kubelet.channel import Connection
from isthmus.kubelet.images.manager import ImageWaitError
from isthmus.kubelet.images.pulls import Pulls, needs
from isthmus.kubelet.pods import starting
from isthmus.kubelet.pods.decision import actions
from isthmus.kubelet.pods.decision.actions import Peer, Work
from isthmus.kubelet.pods.decision.decide import publish
from isthmus.kubelet.pods.memory import Memory
from isthmus.kubelet.pods.parts import Parts
from isthmus.kubelet.pods.starting import NeverError, NotYetError
from isthmus.kubelet.pods.unready import UnreadyError
from isthmus.kubelet.status import pod as status
from isthmus.kubelet.status.event_reasons import EventReason
from isthmus.kubelet.status.events import Kind
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import ImageState
from isthmus.podproto.plan import Container, to_json
from isthmus.support.backoff import Backoff

_log = logging.getLogger(__name__)
Show = Callable[[Mapping[str, Any]], Awaitable[None]]
Send = Callable[[Container | None], Awaitable[None]]


class Background:
    """Runs the work of one pod.

    Args:
        parts: the rest of the kubelet.
        memory: the pod's state.
        show: publishes its status.
    """

    def __init__(self, parts: Parts, memory: Memory, show: Show) -> None:
        self._parts, self._memory, self._show = parts, memory, show
        self._volumes: Any = None

    async def do(self, work: Work) -> None:
        """Run one piece of work to its end."""
        match work:
            case actions.Prepare(None):
                await self._prepare()
            case actions.Prepare(node):
                await self._plan(str(node))
            case actions.Turn():
                await self._turn()
            case actions.Together():
                await self._parts.gangs.together(self._memory.uid)
                self._memory.note(is_together=True)
            case actions.Greet(peer):
                await self._parts.services.greeted(_connection(peer))
                self._memory.note_link(peer, is_greeted=True)
            case actions.Join(peer, name):
                await self._join(_connection(peer), name)
            case actions.Replace(peer, name, _):
                await self._replace(_connection(peer), name)
            case _:
                assert_never(work)

    async def refresh(self) -> None:
        """Send changed ConfigMap, Secret and token volumes to a running pod, and renew its credential.

        Raises:
            KubeError: the API server did not answer.
        """
        state = self._memory.kept
        if state.number is None or state.has_ended:
            return
        link = state.link
        if link and link.is_attached and link.has_plan and not state.is_deleted:
            await self._update(_connection(link.peer), state.pod)
        folder = self._parts.store.folder(self._memory.uid)
        await asyncio.to_thread(folder.renew_credential, self._parts.authority)

    async def _update(self, connection: Connection, pod: Object) -> None:
        try:
            volumes = to_json(translate.update(pod, await self._parts.config.resolve(pod, {})))
        except UnreadyError as error:
            _log.info("pod %s keeps its present files: %s", connection.uid, error)
            return
        if volumes and volumes != self._volumes:
            await connection.send({"type": "update", "volumes": volumes})
        self._volumes = volumes

    async def _prepare(self) -> None:
        """Resolve the pod's references before its job is submitted."""
        try:
            prepared = await starting.prepare(self._parts, self._pod(), show=self._shown)
            self._memory.note(prepared=prepared)
        except NeverError as error:
            self._memory.note(problems=tuple(error.problems))
        except NotYetError as error:
            self._memory.hold(error.status, error.pauses)
        except (KubeError, OSError) as error:
            _log.warning("pod %s: %s", self._memory.uid, error)
            self._memory.hold(None, self._parts.pauses.retry)
        except Exception as error:
            self._failed(error)
            self._memory.hold(None, self._parts.pauses.retry)

    async def _turn(self) -> None:
        """Wait for the other pods of the gang, and show the reason."""
        state, gangs = self._memory.observe(), self._parts.gangs
        if state.prepared is None:
            return
        try:
            job = await starting.slurm_job(self._parts, state.pod, state.prepared)
        except NeverError as error:
            self._memory.note(problems=tuple(error.problems))
            return

        async def show(reason: str, message: str) -> None:
            now = self._memory.observe()
            shown = status.pod_status(now.pod, None, None, now.images, now.now)
            await self._shown({**shown, "reason": reason, "message": message})
            self._parts.recorder.record(now.pod, Kind.WARNING, EventReason.SCHEDULING, message)

        await gangs.turn(state.pod, job.options, show, self._withdraw)
        self._memory.note(has_turn=True, is_withdrawn=False)

    def _withdraw(self) -> None:
        self._memory.note(is_withdrawn=True, is_together=False, has_turn=False)

    async def _plan(self, node: str) -> None:
        """Resolve again for a supervisor without a plan: the kubelet restarted, or the pod changed."""
        try:
            prepared = await starting.prepare(self._parts, self._pod(), node)
            if prepared.plan is None:
                raise KubeError("a claim of the pod has no volume yet")
            self._memory.note(prepared=prepared)
            return
        except (NotYetError, NeverError, KubeError) as error:
            self._parts.recorder.record(self._pod(), Kind.WARNING, EventReason.PLAN, str(error))
        except Exception as error:
            self._failed(error)
        self._memory.hold(None, self._parts.pauses.retry)

    async def _shown(self, shown: Object) -> Object:
        for action in publish(self._memory.observe(), shown):
            if isinstance(action, actions.Publish):
                await self._show(action.status)
        return self._pod()

    async def _join(self, connection: Connection, name: str) -> None:
        """Send an ephemeral container to the supervisor; sending it twice changes nothing."""

        async def send(made: Container | None) -> None:
            if made is not None:
                target = translate.target(self._pod(), name)
                await connection.send({"type": "ephemeral", "container": to_json(made), "target": target})

        await self._provide(connection, name, send)

    async def _replace(self, connection: Connection, name: str) -> None:
        """Send a container's new image to the supervisor; the container waits for one that cannot be pulled."""

        async def send(made: Container | None) -> None:
            container = None if made is None else to_json(made)
            await connection.send({"type": "replace", "name": name, "container": container})

        await self._provide(connection, name, send)

    async def _provide(self, connection: Connection, name: str, send: Send) -> None:
        """Send a container to the supervisor once its images are pulled; show the reason while it waits.

        Args:
            connection: the supervisor; the work ends when it disconnects.
            name: of the container.
            send: gets the container, and None each time it must wait.
        """
        backoff = Backoff(*self._parts.pauses.retry)
        while not connection.is_closed:
            wait_s = backoff.next_s()
            try:
                await send(await self._made(name))
                return
            except ImageWaitError as error:
                wait_s = error.retry_s
                self._memory.note_images({name: error.state})
                await send(None)
            except UnreadyError as error:
                self._memory.note_images({name: ImageState(error.reason, error.message)})
                await send(None)
            except KubeError as error:
                _log.info("container %s of pod %s must wait: %s", name, connection.uid, error)
            except Exception as error:
                self._failed(error)
            await asyncio.sleep(wait_s)

    async def _made(self, name: str) -> Container:
        pod, since_s = self._pod(), time.monotonic()
        wanted = [need for need in needs(pod) if name in need.waits]
        pulls = Pulls(self._parts, pod, await self._parts.config.pull_secrets(pod, since_s), wanted)
        try:
            await pulls.are_late()
            images, states, waits = await pulls.answers()
        finally:
            pulls.end()
        if waits:
            raise waits[0]
        made = translate.single(pod, name, await self._parts.config.resolve(pod, images, since_s))
        self._memory.note_images(states)
        return made

    def _pod(self) -> Object:
        return self._memory.kept.pod

    def _failed(self, error: Exception) -> None:
        _log.error("pod %s", self._memory.uid, exc_info=error)
        self._parts.recorder.record(self._pod(), Kind.WARNING, EventReason.KUBELET, repr(error))


def _connection(peer: Peer) -> Connection:
    assert isinstance(peer, Connection), "the worker makes links of connections"  # noqa: S101
    return peer
