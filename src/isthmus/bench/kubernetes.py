"""Runs a launch in a Kubernetes: as a pod of several tasks, or as an MPIJob."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from isthmus.bench import scripts
from isthmus.bench.launches import Launch
from isthmus.bench.output import OutputError
from isthmus.bench.scripts import NAMESPACE, Object, Site
from isthmus.bench.timing import Timing
from isthmus.clients.kube.errors import KubeError

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MPIJOBS = f"/apis/{scripts.MPIJOB_API}/namespaces/{NAMESPACE}/mpijobs"
_JOB = "labelSelector=training.kubeflow.org/job-name%3D"


class Api(Protocol):
    """The part of isthmus.clients.kube.apiserver.ApiServer that is used here."""

    def get(self, path: str) -> Any:
        """Return the object, or list, at a path."""

    def text(self, path: str) -> str:
        """Return a path's answer as text."""

    def watch(self, path: str, timeout_s: int) -> Iterator[Any]:
        """Yield objects as they change."""

    def apply(self, item: Mapping[str, Any]) -> None:
        """Create or patch an object by server-side apply."""

    def delete(self, item: Mapping[str, Any]) -> None:
        """Delete an object and its dependents."""


class Kubernetes:
    """Creates launches as pods or MPIJobs; a run's objects are gone before the next run is created.

    Args:
        api: its API server.
        site: what its objects need.
        timing: intervals and limits.
        mpijob: makes an MPIJob as it takes one.
        remedy: where its user sees what is wrong.
    """

    def __init__(
        self,
        api: Api,
        site: Site,
        timing: Timing | None = None,
        *,
        mpijob: Callable[[Launch, Site, str], Object] = scripts.mpijob,
        remedy: str = "see `isthmus logs kubelet`",
    ) -> None:
        self._api, self._site, self._timing = api, site, timing or Timing()
        self._mpijob, self._remedy = mpijob, remedy

    def prepare(self) -> None:
        """Create the namespace, and wait for its default service account: without it no pod is admitted.

        Raises:
            KubeError: refused, or no answer.
        """
        self._api.apply(scripts.namespace())
        limit_s = self._timing.account_s
        deadline = time.monotonic() + limit_s
        while not self._api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts")["items"]:
            if time.monotonic() > deadline:
                raise KubeError(f"namespace {NAMESPACE} has no service account after {limit_s:g} s; {self._remedy}")
            time.sleep(self._timing.objects_s)

    def run(self, launch: Launch, name: str) -> tuple[str, float, float]:
        """Run a launch; return what its ranks wrote, and when it was submitted and had ended, seconds since 1970.

        Raises:
            KubeError: refused, or no answer.
            OutputError: it failed, or did not end in time.
        """
        is_job = launch.column.is_mpijob
        item = (self._mpijob if is_job else scripts.pod)(launch, self._site, name)
        try:
            began = time.time()
            self._api.apply(item)
            outcome = self._ended(_MPIJOBS if is_job else _PODS, name, self._timing.limit_s(launch))
            ended = time.time()
            text = self._log(self._launcher(name) if is_job else name)
        finally:
            self._remove(item, name)
        if outcome != "Succeeded":
            raise OutputError(f"{item['kind']} {name} ended as {outcome}: {text[-2000:].strip() or 'it wrote nothing'}")
        return text, began, ended

    def _ended(self, path: str, name: str, limit_s: float) -> str:
        deadline, observed = time.monotonic() + limit_s, "not found"
        while (left_s := int(deadline - time.monotonic())) > 0:
            for item in self._api.watch(f"{path}?fieldSelector=metadata.name%3D{name}", left_s):
                observed = outcome(item)
                if observed in ("Succeeded", "Failed"):
                    return observed
        raise OutputError(f"{name} is {observed} after {limit_s:g} s; {self._remedy}")

    def _launcher(self, name: str) -> str:
        role = "training.kubeflow.org/job-role%3Dlauncher"
        found = self._api.get(f"{_PODS}?{_JOB}{name},{role}")["items"]
        return str(found[-1]["metadata"]["name"]) if found else ""

    def _log(self, pod: str) -> str:
        try:
            return self._api.text(f"{_PODS}/{pod}/log") if pod else ""
        except KubeError as error:
            return f"no log: {error}"

    def _remove(self, item: Object, name: str) -> None:
        self._api.delete(item)
        path = f"{_PODS}?{_JOB}{name}" if item["kind"] == "MPIJob" else f"{_PODS}?fieldSelector=metadata.name%3D{name}"
        limit_s = self._timing.gone_s
        deadline = time.monotonic() + limit_s
        while self._api.get(path)["items"]:
            if time.monotonic() > deadline:
                raise OutputError(f"pods of {name} are still there after {limit_s:g} s; see `kubectl get pods -A`")
            time.sleep(self._timing.objects_s)


def outcome(item: Mapping[str, Any]) -> str:
    """Return a pod's phase, or an MPIJob's condition in the same words where it has ended."""
    status = item.get("status") or {}
    if item.get("kind") != "MPIJob":
        return str(status.get("phase", "Pending"))
    true = [each["type"] for each in status.get("conditions") or () if each["status"] == "True"]
    return next((name for name in ("Succeeded", "Failed") if name in true), true[-1] if true else "New")
