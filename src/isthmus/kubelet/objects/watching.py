"""A reflector: lists a collection, then watches it, for ever.

A watch that ends is resumed from its resource version; if that is too old, the collection is listed again. While the
API server does not answer, the last state remains.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from isthmus.clients.kube.api import GoneError, Kube, KubeError, Object
from isthmus.support.backoff import Backoff

FIRST_S, LONGEST_S = 0.2, 10.0
# A watch that lasted so long resets the backoff, as an event does.
_STABLE_S = 60.0

_log = logging.getLogger(__name__)
OnList = Callable[[list[Object]], None]
OnEvent = Callable[[str, Object], None]


async def follow(
    kube: Kube,
    path: str,
    query: Mapping[str, str],
    on_list: OnList,
    on_event: OnEvent,
    backoff: Backoff | None = None,
) -> None:
    """Reflect a collection.

    Args:
        kube: the API server.
        path: of the collection.
        query: selectors.
        on_list: gets all objects, after the start and after a gap.
        on_event: gets ADDED, MODIFIED or DELETED, and the object.
        backoff: between attempts.
    """
    version, backoff = "", backoff or Backoff(FIRST_S, LONGEST_S)
    while True:
        try:
            if not version:
                listed = await kube.get(path, {"limit": "0", **query})
                items = listed.get("items") or []
                # Items of a list have no `kind`.
                kind = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
                on_list([{**kind, **item} for item in items])
                version = listed["metadata"]["resourceVersion"]
            began_s, has_said = time.monotonic(), False
            async for event in kube.watch(path, version, query):
                version = event.object["metadata"]["resourceVersion"]
                has_said = True
                backoff.reset()
                if event.kind != "BOOKMARK":
                    on_event(event.kind, event.object)
            if time.monotonic() - began_s >= _STABLE_S:
                backoff.reset()
            elif not has_said:
                # A watch that the server closes immediately is not reopened immediately.
                await asyncio.sleep(backoff.next_s())
        except GoneError:
            version = ""
            backoff.reset()
            await asyncio.sleep(backoff.next_s())
        except KubeError as error:
            pause_s = backoff.next_s()
            _log.warning("%s; trying again in %.1f s", error, pause_s)
            await asyncio.sleep(pause_s)
