"""serviceAccountToken: a file with a token; a source of projected volumes only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isthmus.kubelet.volumes.kind import Content, Of, missing
from isthmus.model.pod_inputs import Object, TokenRequest, Wanted
from isthmus.podproto.plan import File

_EXPIRES_S = 3600


class ServiceAccountToken(Content):
    """A token of the pod's service account."""

    name = "serviceAccountToken"
    is_volume = False

    def wanted(self, pod: Object, volume: str, source: Any) -> Wanted:
        """Return the token."""
        return Wanted(tokens=frozenset({_request(source)}), services=False)

    def files(self, of: Of, source: Any, mode: int) -> Iterator[File]:
        """Give the file."""
        token = of.resolved.tokens.get(_request(source))
        if token is None:
            raise missing("the API server has given no service account token yet; wait for it")
        yield File(source["path"], mode, token.encode())


def _request(source: Object) -> TokenRequest:
    return TokenRequest(source.get("audience") or "", source.get("expirationSeconds") or _EXPIRES_S)


KIND = ServiceAccountToken()
