"""List, then watch, for ever: how the kubelet follows a kind of objects.

A watch that ends goes on from where it was; one that is too old begins with a list anew. While the API server does
not answer, the last state stands.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from isthmus.clients.kube.api import GoneError, Kube, KubeError, Object
from isthmus.support.backoff import Backoff

FIRST_S, LONGEST_S = 0.2, 10.0
# A watch that lasted so long is as good as one that said something.
_SETTLED_S = 60.0

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
    """Follow a collection.

    Args:
        kube: is asked.
        path: of the collection.
        query: selectors.
        on_list: takes all objects, after the start and after a gap.
        on_event: takes ADDED, MODIFIED or DELETED, and the object.
        backoff: between two tries where the first one failed.
    """
    version, backoff = "", backoff or Backoff(FIRST_S, LONGEST_S)
    while True:
        try:
            if not version:
                listed = await kube.get(path, {"limit": "0", **query})
                items = listed.get("items") or []
                # Items of a list bear no kind of their own.
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
            if time.monotonic() - began_s >= _SETTLED_S:
                backoff.reset()
            elif not has_said:
                # One that the server ends at once, with nothing said, is not asked for again at once.
                await asyncio.sleep(backoff.next_s())
        except GoneError:
            version = ""
            backoff.reset()
            await asyncio.sleep(backoff.next_s())
        except KubeError as error:
            pause_s = backoff.next_s()
            _log.warning("%s; trying again in %.1f s", error, pause_s)
            await asyncio.sleep(pause_s)
