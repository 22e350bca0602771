"""An API server in memory, strict about versions, identities and names; api_server_cases.py beside it holds it to that.

Only what the kubelet asks of one is there; anything else fails. A path whose last part is a collection's name is one.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from isthmus.clients.kube.api import (
    ConflictError,
    Event,
    GoneError,
    NotFoundError,
    Patch,
    RefusedError,
    UnreachableError,
)

COLLECTIONS = {"configmaps", "pods", "events"}
_QUERY = {"fieldSelector", "limit"}


class FakeKube:
    """Objects by path.

    Attributes:
        asked: the method and path of each request.
        down: nothing is answered.
        oldest: watches from before this version are too old.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.down = False
        self.oldest = 0
        self._log: list[tuple[str, int, str, dict[str, Any]]] = []
        self._changed = asyncio.Condition()
        self._versions = count(1)
        self._version = 0

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return an object or a list."""
        self._answer("GET", path)
        assert not set(query or {}) - _QUERY, query
        if path.rpartition("/")[2] not in COLLECTIONS:
            return self._known(path)
        items = [one for at, one in self.objects.items() if at.rpartition("/")[0] == path and _selected(one, query)]
        meta = {"resourceVersion": str(self._version)}
        return {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": meta, "items": items}

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        self._answer("POST", path)
        meta = {**body["metadata"]}
        name = meta.setdefault("name", f"{meta.pop('generateName', '')}{uuid.uuid4().hex[:5]}")
        at = f"{path}/{name}"
        if at in self.objects:
            raise ConflictError(f"{at} already exists")
        meta |= {"uid": str(uuid.uuid4()), "namespace": path.split("/")[4]}
        return await self._store("ADDED", at, {**body, "metadata": meta})

    async def replace(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace an object."""
        self._answer("PUT", path)
        if body["metadata"]["resourceVersion"] != self._known(path)["metadata"]["resourceVersion"]:
            raise ConflictError(f"{path} has been modified")
        return await self._store("MODIFIED", path, body)

    async def patch(self, path: str, body: dict[str, Any], kind: Patch = Patch.STRATEGIC) -> dict[str, Any]:
        """Merge into an object; lists are replaced, which is enough for both kinds here."""
        self._answer("PATCH", path)
        old = self._known(path.removesuffix("/status"))
        if body.get("metadata", {}).get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise RefusedError(f"{path}: metadata.uid: field is immutable")
        return await self._store("MODIFIED", path.removesuffix("/status"), _merged(old, body))

    async def delete(self, path: str, body: dict[str, Any] | None = None) -> None:
        """Delete an object."""
        self._answer("DELETE", path)
        if path not in self.objects:
            return
        wanted = (body or {}).get("preconditions", {}).get("uid")
        if wanted and wanted != self.objects[path]["metadata"]["uid"]:
            raise ConflictError(f"{path} has another uid")
        await self._store("DELETED", path, self.objects[path])

    async def watch(self, path: str, version: str, query: Mapping[str, str] | None = None) -> AsyncIterator[Event]:
        """Yield changes after a version."""
        self._answer("WATCH", path)
        if int(version) < self.oldest:
            raise GoneError("too old resource version")
        seen = int(version)
        while True:
            for kind, number, at, found in [*self._log]:
                if number > seen and at.rpartition("/")[0] == path and _selected(found, query):
                    yield Event(kind, found)
            seen = self._version
            async with self._changed:
                await self._changed.wait_for(lambda seen=seen: self.down or self._version > seen)  # type: ignore[misc]
            if self.down:
                raise UnreachableError("the watch broke")

    async def set_down(self, down: bool) -> None:
        """Go away, or come back."""
        async with self._changed:
            self.down = down
            self._changed.notify_all()

    def _answer(self, method: str, path: str) -> None:
        self.asked.append((method, path))
        if self.down:
            raise UnreachableError("the API server does not answer")

    def _known(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise NotFoundError(f"{path} not found")
        return self.objects[path]

    async def _store(self, kind: str, path: str, found: dict[str, Any]) -> dict[str, Any]:
        async with self._changed:
            self._version = next(self._versions)
            made = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self._version)}}
            self.objects[path] = made
            if kind == "DELETED":
                del self.objects[path]
            self._log.append((kind, self._version, path, made))
            self._changed.notify_all()
        return made


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    kept = {key: value for key, value in old.items() if new.get(key, value) is not None}
    return {**kept, **{key: _merged(old.get(key), value) for key, value in new.items() if value is not None}}


def _selected(found: dict[str, Any], query: Mapping[str, str] | None) -> bool:
    field, _, value = (query or {}).get("fieldSelector", "").partition("=")
    at: Any = found
    for part in filter(None, field.split(".")):
        at = at.get(part, {})
    return not field or at == value
