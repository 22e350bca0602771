"""Runs a launch in the user's Kubernetes: a pod of several tasks, or an MPIJob."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from isthmus.bench import scripts
from isthmus.bench.launches import Column, Launch
from isthmus.bench.output import OutputError
from isthmus.bench.scripts import NAMESPACE, Object, Site
from isthmus.clients.kube.apiserver import ApiError

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MPIJOBS = f"/apis/{scripts.MPIJOB_API}/namespaces/{NAMESPACE}/mpijobs"
_JOB = "labelSelector=training.kubeflow.org/job-name%3D"
_GONE = 404
_GONE_S = 120
_ACCOUNT_S = 30
_LOOK_S = 0.2
# Beyond a run's own limit: its pods may wait for one another.
_GRACE_S = 120


class Api(Protocol):
    """What is needed of isthmus.clients.kube.apiserver.ApiServer."""

    def get(self, path: str) -> Any:
        """Return what is at a path."""

    def text(self, path: str) -> str:
        """Return what a path says."""

    def watch(self, path: str, timeout_s: int) -> Iterator[Any]:
        """Yield objects as they change."""

    def apply(self, item: Mapping[str, Any]) -> None:
        """Make an object so."""

    def delete(self, item: Mapping[str, Any]) -> None:
        """Remove an object."""


class Kubernetes:
    """The user's own; objects of a run are gone before the next one begins."""

    def __init__(self, api: Api, site: Site) -> None:
        self._api, self._site = api, site

    def prepare(self) -> None:
        """Make the namespace, and wait until pods can be made there: until it has its account.

        Raises:
            ApiError: refused, or no answer.
        """
        self._api.apply(scripts.namespace())
        ends_s = time.monotonic() + _ACCOUNT_S
        while not self._api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts")["items"]:
            if time.monotonic() > ends_s:
                raise ApiError(f"namespace {NAMESPACE} has no account after {_ACCOUNT_S} s; see `isthmus doctor`")
            time.sleep(_LOOK_S)

    def run(self, launch: Launch, name: str) -> tuple[str, float, float]:
        """Run a launch; return what its ranks wrote, and when it was submitted and had ended, seconds since 1970.

        Raises:
            ApiError: refused, or no answer.
            OutputError: it failed, or did not end in time.
        """
        is_job = launch.column is Column.MPIJOB
        item = (scripts.mpijob if is_job else scripts.pod)(launch, self._site, name)
        try:
            began = time.time()
            self._api.apply(item)
            outcome = self._ended(_MPIJOBS if is_job else _PODS, name, launch.minutes * 60 + _GRACE_S)
            ended = time.time()
            text = self._log(self._launcher(name) if is_job else name)
        finally:
            self._remove(item, name)
        if outcome != "Succeeded":
            raise OutputError(f"{item['kind']} {name} ended as {outcome}: {text[-2000:].strip() or 'it wrote nothing'}")
        return text, began, ended

    def _ended(self, path: str, name: str, limit_s: int) -> str:
        ends_s, seen = time.monotonic() + limit_s, "unseen"
        while (left_s := int(ends_s - time.monotonic())) > 0:
            for item in self._api.watch(f"{path}?fieldSelector=metadata.name%3D{name}", left_s):
                seen = outcome(item)
                if seen in ("Succeeded", "Failed"):
                    return seen
        raise OutputError(f"{name} is {seen} after {limit_s} s; `isthmus logs kubelet` may say why")

    def _launcher(self, name: str) -> str:
        role = "training.kubeflow.org/job-role%3Dlauncher"
        found = self._api.get(f"{_PODS}?{_JOB}{name},{role}")["items"]
        return str(found[-1]["metadata"]["name"]) if found else ""

    def _log(self, pod: str) -> str:
        try:
            return self._api.text(f"{_PODS}/{pod}/log") if pod else ""
        except ApiError as error:
            return f"no log: {error}"

    def _remove(self, item: Object, name: str) -> None:
        self._api.delete(item)
        path = f"{_PODS}?{_JOB}{name}" if item["kind"] == "MPIJob" else f"{_PODS}?fieldSelector=metadata.name%3D{name}"
        ends_s = time.monotonic() + _GONE_S
        while self._api.get(path)["items"]:
            if time.monotonic() > ends_s:
                raise OutputError(f"pods of {name} are still there after {_GONE_S} s; see `kubectl get pods -A`")
            time.sleep(_LOOK_S)


def outcome(item: Mapping[str, Any]) -> str:
    """Return in what way a pod or an MPIJob has ended, or how it is."""
    status = item.get("status") or {}
    if item.get("kind") != "MPIJob":
        return str(status.get("phase", "Pending"))
    true = [each["type"] for each in status.get("conditions") or () if each["status"] == "True"]
    return next((name for name in ("Succeeded", "Failed") if name in true), true[-1] if true else "New")
