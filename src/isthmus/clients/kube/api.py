"""The Kubernetes API in plain JSON: objects are dictionaries as the API writes them, errors a small tree.

On aiohttp, which serves the kubelet's own API too. A library with models of all kinds would take 38 MiB and a third of
the kubelet's start, and the kubelet's decisions need what the API server sent, unknown fields included.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from isthmus.clients import http
from isthmus.clients.kube import kubeconfig
from isthmus.clients.kube.errors import (
    ConflictError,
    GoneError,
    KubeError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    of_status,
)
from isthmus.support.aio import aiohttp

__all__ = [
    "ConflictError",
    "Event",
    "GoneError",
    "Kube",
    "KubeError",
    "NotFoundError",
    "Object",
    "Patch",
    "RefusedError",
    "UnreachableError",
]

Object = dict[str, Any]

# A request that has no answer by then is tried again by its caller.
TIMEOUT_S = 30.0
# The server ends a watch by itself after some minutes; silence for longer means a dead connection.
WATCH_S = 240
# A watch sends an object in one line; etcd takes up to 1.5 MiB.
_BUFFER_BYTES = 2 << 20
# Answers that say when to ask again.
_LATER = (429, 503)


class Patch(StrEnum):
    """How a patch is read (RFC 7386; Kubernetes, "Update API Objects in Place")."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, with the whole object."""

    kind: str
    object: Object


@dataclass(frozen=True, slots=True)
class _Call:
    """A request: below the server's URL, with what it carries."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Object | None = None
    content: str = "application/json"

    @property
    def target(self) -> str:
        join = "&" if "?" in self.path else "?"
        return self.path + (join + urlencode(self.query) if self.query else "")


class Kube:
    """An API server as one user.

    Args:
        server: its URL.
        session: of open connections that show who the user is; `connect` and `using` make one.
        timeout_s: of a request that is no watch.
        retries: how often a request is sent again to a server that says when; 0 leaves that to the caller.
    """

    def __init__(
        self, server: str, session: aiohttp.ClientSession, timeout_s: float = TIMEOUT_S, retries: int = 0
    ) -> None:
        self._server, self._session = server, session
        self._timeout_s, self._retries = timeout_s, retries

    @classmethod
    async def connect(cls, path: Path) -> Self:
        """Read a kubeconfig; nothing is sent yet.

        Raises:
            KubeError: it cannot be used.
        """
        try:
            found = kubeconfig.read(path)
            return cls.using(found.server, found.tls())
        except kubeconfig.KubeconfigError as error:
            raise KubeError(str(error)) from error

    @classmethod
    def using(cls, server: str, tls: ssl.SSLContext, timeout_s: float = TIMEOUT_S, retries: int = 0) -> Self:
        """Return a client with a session of its own; in a running event loop."""
        connector = aiohttp.TCPConnector(ssl=tls)
        # No proxy of the environment leads to a cluster of one's own, so none is looked for.
        session = aiohttp.ClientSession(connector=connector, read_bufsize=_BUFFER_BYTES)
        return cls(server, session, timeout_s, retries)

    @property
    def server(self) -> str:
        """Its URL."""
        return self._server

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Object:
        """Return an object or a list."""
        return await self._object(_Call("GET", path, query))

    async def text(self, path: str) -> str:
        """Return what a path says that has no object, as /readyz or a log."""
        return (await self._read(_Call("GET", path))).decode(errors="replace")

    async def create(self, path: str, body: Object) -> Object:
        """Create an object below a collection or a subresource; return it as stored."""
        return await self._object(_Call("POST", path, body=body))

    async def replace(self, path: str, body: Object) -> Object:
        """Replace an object; its resourceVersion guards it."""
        return await self._object(_Call("PUT", path, body=body))

    async def patch(self, path: str, body: Object, kind: Patch = Patch.STRATEGIC) -> Object:
        """Change parts of an object."""
        return await self._object(_Call("PATCH", path, body=body, content=kind))

    async def apply(self, path: str, body: Object, manager: str, *, dry_run: bool = False) -> Object:
        """Make an object so (Kubernetes, "Server-Side Apply"); fields of other managers that differ are taken over.

        Args:
            path: of the object.
            body: what is set in it.
            manager: whose fields these are.
            dry_run: all is checked, admission among it, and nothing is stored.
        """
        query = {"fieldManager": manager, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        return await self._object(_Call("PATCH", path, query, body, Patch.APPLY))

    async def delete(self, path: str, body: Object | None = None) -> None:
        """Delete an object; one that is gone already is success."""
        try:
            await self._read(_Call("DELETE", path, body=body))
        except NotFoundError:
            return

    async def watch(
        self, path: str, version: str | None, query: Mapping[str, str] | None = None, *, length_s: int = WATCH_S
    ) -> AsyncIterator[Event]:
        """Yield what changes after a version, until the server ends the watch.

        Args:
            path: of the list.
            version: of the list that is known; None: what is there comes first, and no bookmarks.
            query: more of it.
            length_s: after which the server ends it.

        Raises:
            GoneError: the version is too old.
            KubeError: the connection broke, or the server refused.
        """
        asked = {"watch": "true", "timeoutSeconds": length_s}
        if version is not None:
            asked |= {"allowWatchBookmarks": "true", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(sock_connect=self._timeout_s, sock_read=length_s + self._timeout_s)
        answer = await self._send(_Call("GET", path, {**asked, **(query or {})}), timeout)
        try:
            async for line in http.lines(answer.content):
                document = json.loads(line)
                if document["type"] == "ERROR":
                    status = document["object"]
                    raise of_status(status.get("code", 500), f"GET {path}: {status.get('message') or status}")
                yield Event(document["type"], document["object"])
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"the watch of {path} broke: {http.reason(error)}") from error
        finally:
            answer.close()

    async def _object(self, call: _Call) -> Object:
        text = await self._read(call)
        return json.loads(text) if text else {}

    async def _read(self, call: _Call) -> bytes:
        answer = await self._send(call, aiohttp.ClientTimeout(total=self._timeout_s))
        try:
            return await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"{self._server} broke off: {http.reason(error)}") from error

    async def _send(self, call: _Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        url, headers = self._server + call.target, {"Accept": "application/json", "Content-Type": call.content}
        data = None if call.body is None else json.dumps(call.body)
        left = self._retries
        while True:
            try:
                answer = await self._session.request(
                    call.method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
                )
                if answer.status < 300:
                    return answer
                text = await answer.text()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise UnreachableError(f"{self._server} did not answer: {http.reason(error)}") from error
            pause_s = self._pause_s(answer) if left else None
            if pause_s is None:
                words = _status(text).get("message") or f"{answer.status} {text.strip()}"
                raise of_status(answer.status, f"{call.method} {call.path}: {words}")
            left -= 1
            await asyncio.sleep(pause_s)

    def _pause_s(self, answer: aiohttp.ClientResponse) -> float | None:
        """When a server that is busy, or whose storage of a new kind begins, wants to be asked again."""
        after = answer.headers.get("Retry-After", "")
        return min(float(after), self._timeout_s) if answer.status in _LATER and after.isdecimal() else None


def _status(text: str) -> Object:
    try:
        known = json.loads(text)
    except ValueError:
        known = None
    return known if isinstance(known, dict) else {}
