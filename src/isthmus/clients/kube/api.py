"""The Kubernetes API in plain JSON: objects are dictionaries as the API writes them, errors a small tree.

kubernetes_asyncio carries the kubeconfig, TLS and connections; its models are left out, because what the kubelet
decides on shall be what the API server sent, fields unknown to this version included.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio.client import ApiClient
from kubernetes_asyncio.config import ConfigException, new_client_from_config

Object = dict[str, Any]

# A request that has no answer by then is tried again by its caller.
TIMEOUT_S = 30.0
# The server ends a watch by itself after some minutes; silence for longer means a dead connection.
WATCH_S = 240


class Patch(StrEnum):
    """How a patch is read (RFC 7386; Kubernetes, "Update API Objects in Place")."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class KubeError(Exception):
    """The API server refused, or did not answer."""


class UnreachableError(KubeError):
    """No answer; nothing is known."""


class NotFoundError(KubeError):
    """There is no such object."""


class ConflictError(KubeError):
    """The object exists already, or has changed meanwhile."""


class GoneError(KubeError):
    """The watch cannot go on from that version; list again."""


class RefusedError(KubeError):
    """Not allowed, or not valid."""


_KINDS: dict[int, type[KubeError]] = {
    401: RefusedError,
    403: RefusedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: RefusedError,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One change that a watch told of: ADDED, MODIFIED, DELETED or BOOKMARK, with the whole object."""

    kind: str
    object: Object


class Kube:
    """An API server as one user.

    Args:
        api: an open connection; `connect` makes one.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    @classmethod
    async def connect(cls, kubeconfig: Path) -> Self:
        """Read a kubeconfig; nothing is sent yet.

        Raises:
            KubeError: it cannot be used.
        """
        try:
            return cls(await new_client_from_config(config_file=str(kubeconfig), persist_config=False))
        except (ConfigException, OSError) as error:
            raise KubeError(f"{kubeconfig} cannot be used: {error}; write it again with `isthmus up`") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Object:
        """Return an object or a list."""
        return await self._request("GET", path, query=query)

    async def create(self, path: str, body: Object) -> Object:
        """Create an object below a collection or a subresource; return it as stored."""
        return await self._request("POST", path, body=body)

    async def replace(self, path: str, body: Object) -> Object:
        """Replace an object; its resourceVersion guards it."""
        return await self._request("PUT", path, body=body)

    async def patch(self, path: str, body: Object, kind: Patch = Patch.STRATEGIC) -> Object:
        """Change parts of an object."""
        return await self._request("PATCH", path, body=body, content=kind)

    async def delete(self, path: str, body: Object | None = None) -> None:
        """Delete an object; one that is gone already is success."""
        try:
            await self._request("DELETE", path, body=body)
        except NotFoundError:
            return

    async def watch(self, path: str, version: str, query: Mapping[str, str] | None = None) -> AsyncIterator[Event]:
        """Yield what changes after a version, until the server ends the watch.

        Raises:
            GoneError: the version is too old.
            KubeError: the connection broke, or the server refused.
        """
        asked = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": WATCH_S}
        timeout = aiohttp.ClientTimeout(sock_connect=TIMEOUT_S, sock_read=WATCH_S + TIMEOUT_S)
        answer = await self._send("GET", path, {**asked, **(query or {})}, None, None, timeout)
        try:
            async for line in _lines(answer.content):
                document = json.loads(line)
                if document["type"] == "ERROR":
                    raise _error(document["object"].get("code", 500), document["object"], path)
                yield Event(document["type"], document["object"])
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"the watch of {path} broke: {error!r}") from error
        finally:
            answer.close()

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content: str | None = None,
    ) -> Object:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        answer = await self._send(method, path, query or {}, body, content, timeout)
        try:
            text = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"the API server broke off: {error!r}") from error
        return json.loads(text) if text else {}

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Object | None,
        content: str | None,
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        url = path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": "application/json", "Content-Type": content or "application/json"}
        try:
            answer: aiohttp.ClientResponse = await self._api.call_api(
                url,
                method,
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=timeout,
            )
            if answer.ok:
                return answer
            text = await answer.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"the API server does not answer: {error!r}") from error
        raise _error(answer.status, _status(text), path)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield whole lines of any length: an object may be larger than the reader's limit for one line."""
    parts: list[bytes] = []
    while chunk := await content.readany():
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        for each in rest:
            if line := b"".join(parts):
                yield line
            parts = [each]


def _status(text: str) -> Object:
    try:
        known = json.loads(text)
    except ValueError:
        known = None
    return known if isinstance(known, dict) else {"message": text.strip()}


def _error(code: int, status: Object, path: str) -> KubeError:
    # A 5xx or "too many requests" says nothing about the object.
    kind = _KINDS.get(code, UnreachableError if code >= 500 or code == 429 else KubeError)
    return kind(f"{path}: {status.get('message') or code}")
