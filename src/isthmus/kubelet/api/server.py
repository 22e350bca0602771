"""The HTTPS server of the kubelet API, to which the API server connects for logs, exec, attach and port-forward.

Every route is authorized by Access. Exec, attach and port-forward are WebSockets
only, as the node's declared feature ExtendWebSocketsToKubelet says.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from isthmus.clients.kube.api import KubeError, Object
from isthmus.kubelet import metrics
from isthmus.kubelet.api import exec as remote
from isthmus.kubelet.api import forward, logs, stats
from isthmus.kubelet.api.access import Access
from isthmus.kubelet.channel import GONE, Connection, Stream, StreamEnded
from isthmus.kubelet.pods.store import PodFolder
from isthmus.podproto.reasons import Reason
from isthmus.support.aio.serving import web
from isthmus.support.metrics import CONTENT_TYPE

# Chunk of a stored log.
_LINES = 500
_TRUE = ("1", "true")
_OVER = ("Failed", "Succeeded")
# A slow reader may still need the rest of an ended pod's log.
_CUT = b"isthmus: the pod's connection ended before this log did; ask again for the rest\n"
_KEPT_KINDS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

_log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Pods(Protocol):
    """Look-up of pods."""

    def named(self, namespace: str, name: str) -> Object | None:
        """Return a pod of this node."""

    def all(self) -> list[Object]:
        """Return all pods of this node."""

    def connection(self, uid: str) -> Connection | None:
        """Return the connection of a pod's supervisor, or None."""

    def folder(self, uid: str) -> PodFolder:
        """Return a pod's folder."""


def context(pki: Path) -> ssl.SSLContext:
    """Return the server's TLS context, which accepts client certificates of the cluster's CA."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    made.verify_mode = ssl.CERT_OPTIONAL
    made.load_cert_chain(pki / "kubelet.crt", pki / "kubelet.key")
    return made


class Server:
    """Routes of the kubelet API.

    Args:
        pods: of this node.
        access: authorizes requests.
    """

    def __init__(self, pods: Pods, access: Access) -> None:
        self._pods = pods
        self._access = access
        self._runner: web.AppRunner | None = None

    async def start(self, address: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen and return the port; port 0 chooses a free one."""
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=2)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port, ssl_context=tls).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop the server and close its connections."""
        if self._runner:
            await self._runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        get = application.router.add_get
        get("/healthz", _healthy)
        get("/pods", self._list)
        get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for kind, handler in (("exec", self._exec), ("attach", self._attach)):
            get(f"/{kind}/{{namespace}}/{{pod}}/{{container}}", handler)
            get(f"/{kind}/{{namespace}}/{{pod}}/{{uid}}/{{container}}", handler)
            application.router.add_post(f"/{kind}/{{rest:.*}}", _old)
        get("/portForward/{namespace}/{pod}", self._forward)
        get("/portForward/{namespace}/{pod}/{uid}", self._forward)
        application.router.add_post("/portForward/{rest:.*}", _old)
        get("/runningpods/", self._running)
        get("/stats/summary", self._summary)
        get("/metrics", self._metrics)
        get("/metrics/resource", self._resources)
        get("/metrics/cadvisor", self._cadvisor)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await self._access.check(request)
            return await handler(request)
        except KubeError as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": self._pods.all()})

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        pod, container = self._container(request)
        options = logs.options(request.query, datetime.now(UTC))
        uid = pod["metadata"]["uid"]
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        end = GONE
        if connection := self._pods.connection(uid):
            stream = await connection.open({"type": "logs", "container": container, **options.to_json()})
            end = await _pass_on(stream, request, response)
        if response.prepared:
            if end.is_gone:
                await response.write(_CUT)
            return response
        if end.error:
            must_have_run(pod, container)
        if end.error and not end.is_gone:
            raise web.HTTPBadRequest(text=end.error)
        await response.prepare(request)
        # The supervisor has just ended; its log file is complete.
        if end.is_gone:
            pieces = logs.kept(await asyncio.to_thread(self._pods.folder(uid).logs, container), options)
            while piece := await asyncio.to_thread(_joined, pieces):
                await response.write(piece)
        return response

    async def _exec(self, request: web.Request) -> web.WebSocketResponse:
        argv = request.query.getall("command", [])
        if not argv:
            raise ValueError("no command; name one after --")
        return await self._join(request, {"type": "exec", "argv": argv})

    async def _attach(self, request: web.Request) -> web.WebSocketResponse:
        return await self._join(request, {"type": "attach"})

    async def _join(self, request: web.Request, order: dict[str, Any]) -> web.WebSocketResponse:
        pod, container = self._container(request)
        flags = {"tty": request.query.get("tty") in _TRUE, "stdin": request.query.get("input") in _TRUE}
        connection = self._pods.connection(pod["metadata"]["uid"])
        socket = await _upgrade(request, remote.PROTOCOLS)
        if connection is None:
            # After a refused upgrade kubectl would try SPDY and show that error instead.
            await remote.refuse(socket, not_running(pod, container))
        else:
            await remote.join(socket, await connection.open({**order, "container": container, **flags}))
        return socket

    async def _forward(self, request: web.Request) -> web.WebSocketResponse:
        pod = self._pod(request)
        connection = self._pods.connection(pod["metadata"]["uid"])
        socket = await _upgrade(request, (forward.PROTOCOL,))
        await forward.Forwarding(socket, connection or not_running(pod)).run()
        return socket

    async def _summary(self, request: web.Request) -> web.Response:
        return web.json_response(await stats.summary(self._pods, self._access.node))

    async def _metrics(self, request: web.Request) -> web.Response:
        return _page(metrics.page(self._pods.all()))

    async def _resources(self, request: web.Request) -> web.Response:
        return _page(stats.resources(await stats.summary(self._pods, self._access.node)))

    async def _cadvisor(self, request: web.Request) -> web.Response:
        found = await stats.summary(self._pods, self._access.node)
        return _page(stats.cadvisor(found, self._pods.all()))

    async def _running(self, request: web.Request) -> web.Response:
        running = [pod for pod in self._pods.all() if self._pods.connection(pod["metadata"]["uid"])]
        items = [one for one in map(stats.running, running) if one["spec"]["containers"]]
        return web.json_response({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items})

    def _pod(self, request: web.Request) -> Object:
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        pod = self._pods.named(namespace, name)
        if pod is None or request.match_info.get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            raise web.HTTPNotFound(text=f'pod "{namespace}/{name}" is not on this node\n')
        return pod

    def _container(self, request: web.Request) -> tuple[Object, str]:
        pod, name = self._pod(request), request.match_info["container"]
        spec = pod["spec"]
        known = [*spec["containers"], *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ())]
        if name not in [one["name"] for one in known]:
            raise web.HTTPNotFound(text=f'container "{name}" is not in pod "{pod["metadata"]["name"]}"\n')
        return pod, name


async def _pass_on(stream: Stream, request: web.Request, response: web.StreamResponse) -> StreamEnded:
    """Respond with a stream's data; return its end."""
    try:
        async for item in stream:
            if not response.prepared:
                await response.prepare(request)
            if item.body:
                await response.write(item.body)
    finally:
        await stream.cancel()
    return stream.end or GONE


def _page(text: str) -> web.Response:
    return web.Response(text=text, headers={"Content-Type": CONTENT_TYPE})


def _joined(pieces: Iterator[bytes]) -> bytes:
    """Return a chunk of lines; empty at the end."""
    return b"".join(islice(pieces, _LINES))


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _old(request: web.Request) -> web.Response:
    raise ValueError("a WebSocket is needed here; use kubectl 1.31 or later")


async def _upgrade(request: web.Request, protocols: tuple[str, ...]) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=protocols, max_msg_size=0, compress=False, decode_text=False)
    if not socket.can_prepare(request).ok:
        raise ValueError("a WebSocket is needed here; use kubectl 1.31 or later")
    if socket.can_prepare(request).protocol is None:
        raise ValueError(f"one of these subprotocols is needed: {', '.join(protocols)}")
    await socket.prepare(request)
    return socket


def not_running(pod: Object, container: str = "") -> str:
    """Return why a pod has no supervisor that could answer."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    what = f'container "{container}" in pod "{name}"' if container else f'pod "{name}"'
    if status.get("phase") in _OVER:
        return f"{what} has ended: the pod's phase is {status['phase']}"
    waiting = (_status(pod, container) or {}).get("state", {}).get("waiting") or {}
    why = waiting.get("reason") or status.get("reason") or Reason.CREATING
    detail = f": {waiting['message']}" if waiting.get("message") else ""
    if status.get("phase") == "Running":
        return f"{what} cannot be reached: its job on the node does not answer; try again, or see kubectl describe pod"
    return f"{what} is waiting to start: {why}{detail}"


def _status(pod: Object, container: str) -> Object | None:
    statuses = [one for kind in _KEPT_KINDS for one in pod.get("status", {}).get(kind, ())]
    return next((one for one in statuses if container in ("", one["name"])), None)


def must_have_run(pod: Object, container: str) -> None:
    """Refuse as the upstream kubelet does if there is no log yet."""
    status = pod.get("status", {})
    found = _status(pod, container)
    name = f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    if found is None:
        # The job is pending, or the pod was refused.
        why = "is not available" if status.get("phase") in _OVER else f"is waiting to start: {Reason.CREATING}"
        raise web.HTTPBadRequest(text=f"{name} {why}")
    waiting = found.get("state", {}).get("waiting")
    if waiting and not found.get("lastState", {}).get("terminated"):
        raise web.HTTPBadRequest(text=f"{name} is waiting to start: {waiting.get('reason', Reason.INITIALIZING)}")
