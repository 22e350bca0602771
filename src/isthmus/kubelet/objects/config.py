"""Resolves a pod's references: ConfigMaps, Secrets, volumes of claims, tokens, Services, pull secrets.

Each object is read by name, as the Node authorizer allows, and cached for seconds, so that a refresh of all pods
is cheap. A starting pod reads only entries newer than itself: it sees all objects created before it. Concurrent starts
share one request. Secrets stay in memory.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from isthmus.clients.kube.api import Kube, NotFoundError, Object, RefusedError
from isthmus.kubelet.objects.tokens import Tokens
from isthmus.kubelet.translate import pod as translate
from isthmus.model.pod_inputs import Image, PodSettings, Resolved, Wanted

_KEPT_S = 10.0
_KEPT_MOST = 4000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Question:
    """A cached answer of the API server, and when it was requested (time.monotonic())."""

    asked_s: float
    answer: asyncio.Task[Object | None]

    @property
    def has_failed(self) -> bool:
        return self.answer.done() and (self.answer.cancelled() or self.answer.exception() is not None)


class Config:
    """Reader and cache of referenced objects.

    Args:
        kube: is asked.
        settings: of the cluster.
        tokens: of service accounts.
    """

    def __init__(self, kube: Kube, settings: PodSettings, tokens: Tokens) -> None:
        self._kube, self.settings, self.tokens = kube, settings, tokens
        self._kept: dict[str, _Question] = {}
        # Queries Slurm unless the last answer is recent; set by NodeLoop.
        self.renew: Callable[[], Awaitable[object]] = _nothing

    async def resolve(self, pod: Object, images: Mapping[str, Image], since_s: float = 0.0) -> Resolved:
        """Return a pod's references, without missing objects and unbound claims.

        Args:
            pod: the pod.
            images: its containers'.
            since_s: by time.monotonic(); older cached ConfigMaps, Secrets and Services are not used.

        Raises:
            KubeError: the API server did not answer.
        """
        wanted: Wanted = translate.wanted(pod)
        space = pod["metadata"]["namespace"]
        config_maps, secrets, volumes, services, tokens = await asyncio.gather(
            self._named(space, "configmaps", wanted.config_maps, since_s),
            self._named(space, "secrets", wanted.secrets, since_s),
            self.volumes(space, wanted.claims),
            self._services(space, since_s) if wanted.services else _nothing(),
            asyncio.gather(*(self.tokens.get(pod, one) for one in sorted(wanted.tokens, key=str))),
        )
        return Resolved(
            settings=self.settings,
            images=images,
            config_maps=config_maps,
            secrets=secrets,
            volumes=volumes,
            tokens=dict(zip(sorted(wanted.tokens, key=str), tokens, strict=True)),
            services=services,
        )

    async def pull_secrets(self, pod: Object, since_s: float) -> list[Object]:
        """Return the pod's pull secrets that exist; the API server has added those of its service account.

        `since_s` is that of `resolve`.
        """
        names = [one["name"] for one in pod["spec"].get("imagePullSecrets") or () if one.get("name")]
        found = await self._named(pod["metadata"]["namespace"], "secrets", names, since_s)
        return [found[name] for name in names if name in found]

    async def namespace(self, name: str) -> Object | None:
        """Return a Namespace."""
        return await self._get(f"/api/v1/namespaces/{name}")

    async def runtime_class(self, name: str) -> Object | None:
        """Return a RuntimeClass."""
        return await self._get(f"/apis/node.k8s.io/v1/runtimeclasses/{name}")

    async def volumes(self, space: str, claims: Iterable[str]) -> dict[str, Object]:
        """Return the volumes of the claims that are bound."""
        found: dict[str, Object] = {}
        for name, claim in (await self._named(space, "persistentvolumeclaims", claims)).items():
            volume = claim["spec"].get("volumeName")
            if claim.get("status", {}).get("phase") == "Bound" and volume:
                bound = await self._get(f"/api/v1/persistentvolumes/{volume}")
                if bound:
                    found[name] = bound
            else:
                # The next read must not come from the cache.
                self._kept.pop(f"/api/v1/namespaces/{space}/persistentvolumeclaims/{name}", None)
        return found

    async def claims(self, space: str, names: Iterable[str]) -> dict[str, Object]:
        """Return the current claims."""
        found = await asyncio.gather(*(self._claim(space, name) for name in sorted(names)))
        return {claim["metadata"]["name"]: claim for claim in found if claim}

    async def _claim(self, space: str, name: str) -> Object | None:
        path = f"/api/v1/namespaces/{space}/persistentvolumeclaims/{name}"
        self._kept.pop(path, None)
        return await self._get(path)

    async def _services(self, space: str, since_s: float) -> tuple[Object, ...]:
        listed = await self._get(f"/api/v1/namespaces/{space}/services", since_s)
        items = [*(listed or {}).get("items", ())]
        if space != "default" and (own := await self._get("/api/v1/namespaces/default/services/kubernetes")):
            items.append(own)
        return tuple(items)

    async def _named(self, space: str, kind: str, names: Iterable[str], since_s: float = 0.0) -> dict[str, Object]:
        wanted = sorted(names)
        base = f"/api/v1/namespaces/{space}/{kind}"
        found = await asyncio.gather(*(self._get(f"{base}/{name}", since_s) for name in wanted))
        return {name: one for name, one in zip(wanted, found, strict=True) if one is not None}

    async def _get(self, path: str, since_s: float = 0.0) -> Object | None:
        """Return an object, perhaps from the cache; None if it does not exist."""
        since_s = max(since_s, time.monotonic() - _KEPT_S)
        kept = self._kept.get(path)
        # One request at a time: waiting callers share the next one.
        while kept and kept.asked_s < since_s and not kept.answer.done():
            await asyncio.wait([kept.answer])
            kept = self._kept.get(path)
        if kept is None or kept.asked_s < since_s or kept.has_failed:
            if len(self._kept) >= _KEPT_MOST:
                self._kept.clear()
            kept = self._kept[path] = _Question(time.monotonic(), asyncio.create_task(self._ask(path)))
        found = await asyncio.shield(kept.answer)
        if found is None:
            # A missing object may be created at any moment.
            self._kept.pop(path, None)
        return found

    async def _ask(self, path: str) -> Object | None:
        try:
            return await self._kube.get(path)
        except NotFoundError:
            return None
        except RefusedError as error:
            # The Node authorizer sees a new pod's references a moment after the kubelet does.
            _log.info("%s", error)
            return None


async def _nothing() -> tuple[Any, ...]:
    return ()
