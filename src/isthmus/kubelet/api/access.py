"""Authentication and authorization of the kubelet API.

A user is identified by a client certificate of the cluster's CA or by TokenReview. SubjectAccessReview decides the
rights on `nodes/<subresource>` (Kubernetes, "Kubelet authorization"); answers are cached for a short time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from isthmus.clients.kube.api import Kube
from isthmus.support.aio.serving import web

_KEPT_S = 60.0
_KEPT_MOST = 1000
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PARTS = {
    **{"stats": "stats", "metrics": "metrics", "logs": "log"},
    **{"pods": "pods", "runningpods": "pods", "healthz": "healthz"},
}
# A WebSocket starts as GET, but running a program or opening a connection is not reading.
_ACTS = ("exec", "attach", "portForward")


@dataclass(frozen=True, slots=True)
class Person:
    """The authenticated user."""

    name: str
    groups: tuple[str, ...]


class Access:
    """Authorizes each request.

    Args:
        kube: reviews tokens and rights.
        node: name of the node object.
    """

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube = kube
        self.node = node
        self._rights: dict[tuple[Person, str, str], tuple[bool, float]] = {}

    async def check(self, request: web.Request) -> None:
        """Authorize a request.

        Raises:
            web.HTTPUnauthorized: the user is unknown.
            web.HTTPForbidden: the user is not authorized.
            KubeError: the API server did not answer.
        """
        person = _certified(request) or await self._tokened(request)
        if person is None:
            raise web.HTTPUnauthorized(text="no client certificate and no token\n")
        first = request.path.strip("/").partition("/")[0]
        verb = "create" if first in _ACTS else _VERBS.get(request.method, "update")
        part = _PARTS.get(first, "proxy")
        if not await self._may(person, verb, part):
            raise web.HTTPForbidden(text=f"{person.name} may not {verb} nodes/{part} of {self.node}\n")

    async def _tokened(self, request: web.Request) -> Person | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            return None
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = await self._kube.create("/apis/authentication.k8s.io/v1/tokenreviews", review)
        status = answer.get("status", {})
        user = status.get("user", {})
        return Person(user["username"], tuple(user.get("groups", ()))) if status.get("authenticated") else None

    async def _may(self, person: Person, verb: str, part: str) -> bool:
        key = (person, verb, part)
        allowed, until = self._rights.get(key, (False, 0.0))
        if time.monotonic() < until:
            return allowed
        asked = {"verb": verb, "resource": "nodes", "subresource": part, "name": self.node}
        spec = {"user": person.name, "groups": list(person.groups), "resourceAttributes": asked}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._kube.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        allowed = answer["status"].get("allowed", False)
        if len(self._rights) >= _KEPT_MOST:
            self._rights.clear()
        self._rights[key] = (allowed, time.monotonic() + _KEPT_S)
        return bool(allowed)


def _certified(request: web.Request) -> Person | None:
    certificate = request.transport.get_extra_info("peercert") if request.transport else None
    parts = [part for name in (certificate or {}).get("subject", ()) for part in name]
    name = next((value for key, value in parts if key == "commonName"), "")
    return Person(name, tuple(value for key, value in parts if key == "organizationName")) if name else None
