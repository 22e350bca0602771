"""Installs, inspects and removes a workload in a user's cluster, through the API server alone.

All of it may be repeated: objects are applied (server-side), and deleting what is gone is success. The caller may be
ended at any moment, and asks again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from isthmus.clients.kube.errors import KubeError
from isthmus.workloads.offer import Workload, WorkloadError

Progress = Callable[[str], None]
_GONE = 404
_LOOK_S = 0.5
# Several of the API server's looks at its OpenAPI.
_ADMISSION_S = 30
# These first: the others are of a kind, or in a namespace, that they make.
_FIRST = ("Namespace", "CustomResourceDefinition")
_VERSION = "app.kubernetes.io/version"
# A finished object is one of these as well as what it was before.
_ENDS = ("Succeeded", "Failed", "Suspended", "Running", "Created")


class Api(Protocol):
    """What is needed of isthmus.clients.kube.apiserver.ApiServer."""

    def get(self, path: str) -> Any:
        """Return what is at a path."""

    def apply(self, item: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Make an object so, or only have it checked."""

    def delete(self, item: Mapping[str, Any], *, foreground: bool = False) -> None:
        """Remove an object, on demand only with all that it owns; one that is gone is fine."""


@dataclass(frozen=True, slots=True)
class State:
    """How a workload is in a cluster.

    Attributes:
        added: whether its operator is there.
        ready: whether that serves.
        version: the one that was added; empty for none.
        problem: why it is not ready, as far as the cluster reports it.
        objects: condition -> count of users' objects; an object without a condition has none yet ("New").
    """

    added: bool = False
    ready: bool = False
    version: str = ""
    problem: str = ""
    objects: dict[str, int] = field(default_factory=dict)


def state(api: Api, workload: Workload) -> State:
    """Look at a workload.

    Raises:
        KubeError: no answer.
    """
    deployment = _found(api, _deployment(workload))
    counted = Counter(_condition(each) for each in _users_objects(api, workload))
    if deployment is None:
        return State(objects=dict(counted))
    status = deployment.get("status", {})
    ready = status.get("observedGeneration") == deployment["metadata"].get("generation") and bool(
        status.get("availableReplicas")
    )
    version = deployment["metadata"].get("labels", {}).get(_VERSION, "")
    return State(True, ready, version, "" if ready else _problem(api, workload, status), dict(counted))


def add(api: Api, workload: Workload, progress: Progress, timeout_s: float) -> State:
    """Add a workload, or bring it to the site's version; return when it is ready.

    Args:
        api: of the user's cluster.
        workload: what to add.
        progress: takes what is waited for.
        timeout_s: how long to wait until it is ready; 0 for not at all.

    Raises:
        KubeError: refused, or no answer.
        WorkloadError: it is not ready in time.
    """
    objects = workload.objects()
    first = [each for each in objects if each["kind"] in _FIRST]
    for item in first:
        progress(f"making {item['kind']} {item['metadata']['name']}")
        api.apply(item)
    _until(lambda: all(_is_served(api, item) for item in first), 30, f"{workload.kind} is not served")
    for item in objects:
        if item not in first:
            progress(f"making {item['kind']} {item['metadata']['name']}")
            api.apply(item)
    now = state(api, workload)
    if not timeout_s:
        return now
    progress(f"waiting for the pod of {workload.deployment}")
    ends_s = time.monotonic() + timeout_s
    while not now.ready:
        if time.monotonic() > ends_s:
            look = f"kubectl --namespace {workload.namespace} describe pods"
            raise WorkloadError(f"{workload.name} is not ready after {timeout_s:g} s: {now.problem}; see `{look}`")
        time.sleep(_LOOK_S)
        now = state(api, workload)
    _wait_for_admission(api, workload, progress)
    return now


def _wait_for_admission(api: Api, workload: Workload, progress: Progress) -> None:
    """Wait until users' objects are accepted.

    A MutatingAdmissionPolicy refuses objects of a kind that the API server's own OpenAPI, which it reads again each few
    seconds, does not have yet. A user's own policy may refuse the example for ever, so the wait is bounded.
    """
    example = workload.example()
    if example is None:
        return
    item = {**example, "metadata": {**example["metadata"], "name": f"{workload.name}-accepted"}}
    progress(f"waiting until a {workload.kind} is accepted")
    ends_s = time.monotonic() + _ADMISSION_S
    while not _is_accepted(api, item) and time.monotonic() < ends_s:
        time.sleep(_LOOK_S)


def _is_accepted(api: Api, item: Mapping[str, Any]) -> bool:
    try:
        api.apply(item, dry_run=True)
    except KubeError:
        return False
    return True


def remove(api: Api, workload: Workload, progress: Progress, timeout_s: float, *, force: bool) -> bool:
    """Remove a workload with all that its objects have; return whether there was one.

    Args:
        api: of the user's cluster.
        workload: what to remove.
        progress: takes what is waited for.
        timeout_s: how long to wait until all is gone.
        force: also with objects of the user's that have not ended.

    Raises:
        KubeError: refused, or no answer.
        WorkloadError: objects of the user's are there, or something stays.
    """
    before = state(api, workload)
    active = sum(count for name, count in before.objects.items() if name not in ("Succeeded", "Failed"))
    if active and not force:
        raise WorkloadError(
            f"{active} {workload.kind}{'' if active == 1 else 's'} of yours would end with it; delete them first "
            f"(`kubectl get {workload.kind.lower()} --all-namespaces`), or say --force. Nothing was removed"
        )
    # While the operator is there: it cleans up behind them. And with their pods: the garbage collector leaves these
    # alone when it does not find the owner's kind any more, and they would run on.
    for item in _users_objects(api, workload):
        progress(f"deleting {workload.kind} {item['metadata']['namespace']}/{item['metadata']['name']}")
        api.delete(item, foreground=True)
    _until(lambda: not _users_objects(api, workload), timeout_s, f"a {workload.kind} is still there")
    objects = workload.objects()
    for item in reversed(objects):
        progress(f"deleting {item['kind']} {item['metadata']['name']}")
        api.delete(item)
    namespace = f"/api/v1/namespaces/{workload.namespace}"
    progress(f"waiting until namespace {workload.namespace} is gone")
    _until(lambda: _found(api, namespace) is None, timeout_s, f"namespace {workload.namespace} is still there")
    return before.added


def _deployment(workload: Workload) -> str:
    return f"/apis/apps/v1/namespaces/{workload.namespace}/deployments/{workload.deployment}"


def _found(api: Api, path: str) -> Any:
    try:
        return api.get(path)
    except KubeError as error:
        if error.status == _GONE:
            return None
        raise


def _users_objects(api: Api, workload: Workload) -> list[dict[str, Any]]:
    listed = _found(api, workload.resources)
    # Items of a list don't say of what kind they are.
    kind = {"apiVersion": workload.resources.split("/", 2)[2].rpartition("/")[0], "kind": workload.kind}
    return [{**each, **kind} for each in (listed or {}).get("items", [])]


def _condition(item: Mapping[str, Any]) -> str:
    true = {each["type"] for each in (item.get("status", {}).get("conditions") or []) if each["status"] == "True"}
    return next((name for name in _ENDS if name in true), "New")


def _is_served(api: Api, item: Mapping[str, Any]) -> bool:
    if item["kind"] != "CustomResourceDefinition":
        return True
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{item['metadata']['name']}"
    # A definition that was made just now has `conditions: null`.
    conditions = (_found(api, path) or {}).get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _problem(api: Api, workload: Workload, status: Mapping[str, Any]) -> str:
    """Return what a pod of the operator waits for, else what the Deployment says."""
    pods = (_found(api, f"/api/v1/namespaces/{workload.namespace}/pods") or {}).get("items", [])
    return next(filter(None, (_waits(pod) for pod in pods)), "") or _said(status.get("conditions") or [])


def _waits(pod: Mapping[str, Any]) -> str:
    status = pod.get("status", {})
    waiting = (each.get("state", {}).get("waiting") for each in status.get("containerStatuses") or [])
    words = [f"{each.get('reason', '')}: {each.get('message', '')}".strip(": ") for each in waiting if each]
    return next(iter(words), "") or _said(status.get("conditions") or [])


def _said(conditions: Iterable[Mapping[str, Any]]) -> str:
    false = (each for each in conditions if each["status"] == "False")
    return next((f"{each.get('reason', '')}: {each.get('message', '')}".strip(": ") for each in false), "")


def _until(done: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    ends_s = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > ends_s:
            raise WorkloadError(f"{otherwise} after {timeout_s:g} s; try again, it goes on where it was")
        time.sleep(_LOOK_S)
