"""The Kubernetes API for commands and threads: `api`, one request after the other, and server-side apply of any object.

Server-side apply (Kubernetes: Server-Side Apply) makes what is missing and changes only fields that are this
manager's; to repeat it is harmless. `api` is loaded with the first request: see `isthmus.clients.http`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from isthmus.clients.kube.errors import KubeError, UnreachableError
from isthmus.support.tls import ClientTls

if TYPE_CHECKING:
    from isthmus.clients.kube.api import Event, Kube
    from isthmus.clients.kube.kubeconfig import Kubeconfig

Result = TypeVar("Result")

MANAGER = "isthmus"
TIMEOUT_S = 10.0
# As often as client-go does.
_RETRIES = 10
_FOREGROUND = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}


@dataclass(frozen=True, slots=True)
class Access:
    """How a client gets in: the URL, and three files."""

    server: str
    ca: Path
    certificate: Path
    key: Path


class ApiServer:
    """A client; each call stands for itself, so several threads may share it. None runs in an event loop's thread."""

    def __init__(self, access: Access | Kubeconfig, timeout_s: float = TIMEOUT_S) -> None:
        self._server = access.server
        if isinstance(access, Access):
            self._tls = ClientTls(access.ca, access.certificate, access.key).context
        else:
            self._tls = access.tls
        self._timeout_s = timeout_s
        self._resources = cache(self._read_resources)

    def get(self, path: str) -> Any:
        """Return the object, or list, at a path.

        Raises:
            KubeError: it is not there, or no answer.
        """
        return self._ask(lambda kube: kube.get(path))

    def text(self, path: str) -> str:
        """Return what a path says, as /readyz does.

        Raises:
            KubeError: it does not say "yes", or no answer.
        """
        return self._ask(lambda kube: kube.text(path))

    def watch(self, path: str, timeout_s: int) -> Iterator[Any]:
        """Yield objects of a list as they are now and after each change, until the time is over or the server ends it.

        Args:
            path: of the list, with selectors.
            timeout_s: when the server ends it.

        Raises:
            KubeError: refused, no answer, or it broke off.
        """
        with asyncio.Runner() as runner:
            kube = runner.run(self._connected())
            try:
                events = kube.watch(path, None, length_s=timeout_s)
                while (event := runner.run(_next(events))) is not None:
                    yield event.object
            finally:
                runner.run(kube.close())

    def apply(self, item: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Make an object so; fields of other managers that differ are taken over.

        Args:
            item: the object.
            dry_run: it is checked alone, nothing is stored.

        Raises:
            KubeError: refused, or no answer.
        """
        path = self._path(item)
        self._ask(lambda kube: kube.apply(path, dict(item), MANAGER, dry_run=dry_run))

    def delete(self, item: Mapping[str, Any], *, foreground: bool = False) -> None:
        """Remove an object; one that is gone is fine.

        Args:
            item: the object.
            foreground: it stays, being deleted, until what it owns is gone (Kubernetes: Garbage Collection, "Foreground
                cascading deletion"); else what it owns goes later.

        Raises:
            KubeError: refused, or no answer.
        """
        path, options = self._path(item), _FOREGROUND if foreground else None
        self._ask(lambda kube: kube.delete(path, options))

    def _path(self, item: Mapping[str, Any]) -> str:
        version, kind, meta = item["apiVersion"], item["kind"], item["metadata"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            plural, is_namespaced = self._resources(base)[kind]
        except KeyError as error:
            raise KubeError(f"the API server has no {version} {kind}") from error
        scope = f"/namespaces/{meta.get('namespace', 'default')}" if is_namespaced else ""
        return f"{base}{scope}/{plural}/{meta['name']}"

    def _read_resources(self, base: str) -> dict[str, tuple[str, bool]]:
        listed = self.get(base)["resources"]
        return {each["kind"]: (each["name"], each["namespaced"]) for each in listed if "/" not in each["name"]}

    def _ask(self, call: Callable[[Kube], Awaitable[Result]]) -> Result:
        return asyncio.run(self._asked(call))

    async def _asked(self, call: Callable[[Kube], Awaitable[Result]]) -> Result:
        kube = await self._connected()
        try:
            return await call(kube)
        finally:
            await kube.close()

    async def _connected(self) -> Kube:
        from isthmus.clients.kube.api import Kube

        try:
            return Kube.using(self._server, self._tls(), self._timeout_s, _RETRIES)
        except OSError as error:
            raise UnreachableError(f"{self._server} was not asked: {error}") from error


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)
