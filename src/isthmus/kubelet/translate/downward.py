"""The downward API: fields and resources of the pod itself, for variables and files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from isthmus.kubelet.translate.resources import Demand
from isthmus.model.kubernetes.quantities import MIB, whole
from isthmus.model.pod_inputs import Object
from isthmus.podproto.plan import Fact

_KEYED = re.compile(r"metadata\.(?P<map>labels|annotations)\['(?P<key>[^']+)'\]")
FACTS = {
    "status.podIP": Fact.POD_IP,
    "status.podIPs": Fact.POD_IPS,
    "status.hostIP": Fact.HOST_IP,
    "status.hostIPs": Fact.HOST_IPS,
}
_FIELDS: dict[str, Callable[[Object], str]] = {
    "metadata.name": lambda pod: str(pod["metadata"]["name"]),
    "metadata.namespace": lambda pod: str(pod["metadata"].get("namespace", "default")),
    "metadata.uid": lambda pod: str(pod["metadata"]["uid"]),
    "metadata.labels": lambda pod: _lines(pod["metadata"].get("labels")),
    "metadata.annotations": lambda pod: _lines(pod["metadata"].get("annotations")),
    "spec.nodeName": lambda pod: str(pod["spec"].get("nodeName") or ""),
    "spec.serviceAccountName": lambda pod: str(pod["spec"].get("serviceAccountName") or "default"),
}


def is_field(path: str) -> bool:
    """Return whether a field is supported."""
    return path in _FIELDS or path in FACTS or _KEYED.fullmatch(path) is not None


def field(pod: Object, path: str) -> str | Fact:
    """Return a field's value, or a placeholder that the compute node fills in.

    Raises:
        KeyError: there is no such field; see is_field.
    """
    if path in FACTS:
        return FACTS[path]
    if keyed := _KEYED.fullmatch(path):
        return str((pod["metadata"].get(keyed["map"]) or {}).get(keyed["key"], ""))
    return _FIELDS[path](pod)


def is_resource(name: str) -> bool:
    """Return whether a resource is supported, e.g. `limits.cpu`."""
    kind, _, what = name.partition(".")
    return kind in ("limits", "requests") and bool(what)


def resource(container: Object, demand: Demand, name: str, divisor: str | int) -> str:
    """Return a container's resource in divisors, rounded up; without its own, the job's.

    Args:
        container: whose.
        demand: of its pod.
        name: e.g. `limits.cpu`.
        divisor: a quantity; 0 counts as 1.
    """
    kind, _, what = name.partition(".")
    stated = (container.get("resources") or {}).get(kind) or {}
    job = {"cpu": str(demand.cpus), "memory": str(demand.memory_mib * MIB)}
    # An unset request counts as 0, an unset limit as the job's allocation.
    missing = job.get(what, "0") if kind == "limits" else "0"
    return str(whole(stated.get(what, missing), divisor))


def _lines(values: dict[str, str] | None) -> str:
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted((values or {}).items()))
