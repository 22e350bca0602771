"""A user of a test's API server: makes pods, looks at them, deletes them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.support.servers.api_server import NODE, ApiServer
from tests.support.wait import wait

SOON: dict[str, Any] = {"timeout_s": 120, "interval_s": 0.05}
_PODS = "/api/v1/namespaces/default/pods"


class KubeUser:
    """The administrator of an API server."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._session = server.session()

    def get(self, path: str) -> dict[str, Any]:
        """Return what is there, or the error."""
        return self._session.get(f"{self._server.url}{path}").json()

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        made = self._session.post(f"{self._server.url}{path}", json=body)
        assert made.ok, made.text
        return made.json()

    def patch(self, path: str, body: dict[str, Any], kind: str = "merge-patch") -> None:
        """Change an object."""
        headers = {"Content-Type": f"application/{kind}+json"}
        done = self._session.patch(f"{self._server.url}{path}", data=json.dumps(body), headers=headers)
        assert done.ok, done.text

    def remove(self, path: str) -> None:
        """Delete an object."""
        self._session.delete(f"{self._server.url}{path}").raise_for_status()

    def config(self, **data: str) -> str:
        """Make a ConfigMap; return its name."""
        name = f"config-{uuid.uuid4().hex[:6]}"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        self.create("/api/v1/namespaces/default/configmaps", body)
        return name

    def pod(self, **spec: Any) -> dict[str, Any]:
        """Make a pod of one container, of which `container` changes fields; it may have `labels`."""
        main = {"name": "main", "image": "web", **spec.pop("container", {})}
        own = {"nodeName": NODE, "automountServiceAccountToken": False, "restartPolicy": "Never"}
        meta = {"name": f"pod-{uuid.uuid4().hex[:6]}", "labels": spec.pop("labels", {})}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**own, "containers": [main], **spec}}
        return self.create(_PODS, body)

    def now(self, pod: dict[str, Any]) -> dict[str, Any] | None:
        """Return a pod as it is; None when it is gone."""
        found = self.get(f"{_PODS}/{pod['metadata']['name']}")
        return found if found["metadata"].get("uid") == pod["metadata"]["uid"] else None

    def status(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod's status."""
        return (self.now(pod) or {}).get("status", {})

    def events(self, pod: dict[str, Any], reason: str) -> list[dict[str, Any]]:
        """Return the events of a pod that have a reason."""
        found = self.get("/api/v1/namespaces/default/events")["items"]
        uid = pod["metadata"]["uid"]
        return [one for one in found if (one["involvedObject"].get("uid"), one["reason"]) == (uid, reason)]

    def delete(self, pod: dict[str, Any], grace: int = 5) -> None:
        """Have a pod end."""
        path = f"{self._server.url}{_PODS}/{pod['metadata']['name']}"
        self._session.delete(path, json={"gracePeriodSeconds": grace}).raise_for_status()

    def wait_phase(self, pod: dict[str, Any], phase: str) -> dict[str, Any]:
        """Wait until a pod is in a phase; return its status."""
        return wait(lambda: self.status(pod), lambda status: status.get("phase") == phase, **SOON)

    def wait_waiting(self, pod: dict[str, Any], reason: str) -> None:
        """Wait until a pod's first container waits for a reason."""
        wait(lambda: self._reason(pod), lambda found: found == reason, **SOON)

    def wait_gone(self, pod: dict[str, Any]) -> None:
        """Wait until a pod is gone."""
        wait(lambda: self.now(pod) is None, **SOON)

    def clear(self) -> None:
        """Remove all pods and claims, so that the next kubelet begins without any."""
        for kind in ("pods", "persistentvolumeclaims"):
            path = f"{self._server.url}/api/v1/namespaces/default/{kind}"
            self._session.delete(path, json={"gracePeriodSeconds": 0}).raise_for_status()
        wait(lambda: not self.get(_PODS)["items"], **SOON)

    def _reason(self, pod: dict[str, Any]) -> str:
        first = (self.status(pod).get("containerStatuses") or [{}])[0]
        return first.get("state", {}).get("waiting", {}).get("reason", "")
