"""Tokens of pods' service accounts: bound to the pod, cached, and renewed before they expire."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from isthmus.clients.kube.api import Kube, Object
from isthmus.model.pod_inputs import TokenRequest

# Renewed at 80 % of its lifetime, as in Kubernetes.
_FRESH = 0.8


@dataclass(frozen=True, slots=True)
class _Kept:
    token: str
    until_s: float


class Tokens:
    """The tokens of all pods, in memory only.

    Args:
        kube: issues them.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._kept: dict[tuple[str, TokenRequest], _Kept] = {}

    async def get(self, pod: Object, request: TokenRequest) -> str:
        """Return a token that is not about to expire.

        Raises:
            KubeError: the API server issued none.
        """
        meta = pod["metadata"]
        key = (meta["uid"], request)
        kept = self._kept.get(key)
        if kept and time.monotonic() < kept.until_s:
            return kept.token
        account = pod["spec"].get("serviceAccountName") or "default"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec: dict[str, Any] = {"expirationSeconds": request.expires_s, "boundObjectRef": bound}
        if request.audience:
            spec["audiences"] = [request.audience]
        path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self._kube.create(path, asked)
        lives_s = answer["spec"].get("expirationSeconds") or request.expires_s
        self._kept[key] = _Kept(answer["status"]["token"], time.monotonic() + lives_s * _FRESH)
        return self._kept[key].token

    def forget(self, uid: str) -> None:
        """Forget the tokens of a removed pod."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != uid}
