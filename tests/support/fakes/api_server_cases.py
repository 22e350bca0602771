"""What the kubelet expects of an API server, as cases: the fake and the real one must pass the same.

Each case is a coroutine that takes a client and a namespace of its own.
"""

from __future__ import annotations

import asyncio
from typing import Any

from isthmus.clients.kube import api as kube
from isthmus.clients.kube.api import Kube

ONE_S = 1.0


def path(namespace: str, name: str = "") -> str:
    """Return where ConfigMaps lie, or one of them."""
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def config(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def refused(kind: type[kube.KubeError], call: Any) -> None:
    """Await a call that must fail in this way."""
    try:
        await call
    except kube.KubeError as error:
        assert type(error) is kind, error
    else:
        raise AssertionError(f"no {kind.__name__}")


async def created_object_is_stored(api: Kube, namespace: str) -> None:
    """What was created is read back, with an identity."""
    made = await api.create(path(namespace), config("a", key="1"))
    assert made["metadata"]["uid"]
    assert await api.get(path(namespace, "a")) == made


async def second_create_conflicts(api: Kube, namespace: str) -> None:
    """A name is taken once."""
    await api.create(path(namespace), config("a"))
    await refused(kube.ConflictError, api.create(path(namespace), config("a")))


async def missing_object_is_reported(api: Kube, namespace: str) -> None:
    """What is not there has an error of its own, but deleting it is success."""
    await refused(kube.NotFoundError, api.get(path(namespace, "none")))
    await refused(kube.NotFoundError, api.patch(path(namespace, "none"), {"data": {}}))
    await api.delete(path(namespace, "none"))


async def stale_replace_conflicts(api: Kube, namespace: str) -> None:
    """Of two writers that read the same version, one wins."""
    made = await api.create(path(namespace), config("a", key="1"))
    await api.replace(path(namespace, "a"), {**made, "data": {"key": "2"}})
    await refused(kube.ConflictError, api.replace(path(namespace, "a"), {**made, "data": {"key": "3"}}))
    assert (await api.get(path(namespace, "a")))["data"] == {"key": "2"}


async def patch_changes_parts(api: Kube, namespace: str) -> None:
    """A patch sets, keeps and removes keys."""
    await api.create(path(namespace), config("a", kept="1", gone="1"))
    patched = await api.patch(path(namespace, "a"), {"data": {"gone": None, "new": "2"}})
    assert patched["data"] == {"kept": "1", "new": "2"}


async def other_uid_conflicts(api: Kube, namespace: str) -> None:
    """A patch or deletion that names another object's identity does nothing."""
    await api.create(path(namespace), config("a", key="1"))
    await refused(kube.RefusedError, api.patch(path(namespace, "a"), {"metadata": {"uid": "other"}, "data": {}}))
    await refused(kube.ConflictError, api.delete(path(namespace, "a"), {"preconditions": {"uid": "other"}}))
    assert (await api.get(path(namespace, "a")))["data"] == {"key": "1"}


async def watch_reports_changes(api: Kube, namespace: str) -> None:
    """A watch from a list's version yields each later change in order."""
    listed = await api.get(path(namespace))
    watched = api.watch(path(namespace), listed["metadata"]["resourceVersion"])
    await api.create(path(namespace), config("a"))
    await api.patch(path(namespace, "a"), {"data": {"key": "1"}})
    await api.delete(path(namespace, "a"))
    reported: list[tuple[str, str]] = []
    async with asyncio.timeout(60 * ONE_S):
        async for event in watched:
            if event.kind != "BOOKMARK":
                reported.append((event.kind, event.object["metadata"]["name"]))
            if len(reported) == 3:
                break
    assert reported == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def selected_list_is_narrow(api: Kube, namespace: str) -> None:
    """A field selector leaves others out."""
    for name in ("a", "b"):
        await api.create(path(namespace), config(name))
    listed = await api.get(path(namespace), {"fieldSelector": "metadata.name=b"})
    assert [each["metadata"]["name"] for each in listed["items"]] == ["b"]


CASES = (
    created_object_is_stored,
    second_create_conflicts,
    missing_object_is_reported,
    stale_replace_conflicts,
    patch_changes_parts,
    other_uid_conflicts,
    watch_reports_changes,
    selected_list_is_narrow,
)
