"""Looks at a plain Kubernetes: whether MPIJobs can run there, and what its nodes have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isthmus.bench import scripts
from isthmus.bench.kubernetes import Api
from isthmus.bench.plan import Plain
from isthmus.clients.kube.errors import KubeError, NotFoundError, UnreachableError
from isthmus.model.kubernetes.quantities import MIB, parse

_NODES = "/api/v1/nodes"
_MPIJOBS = f"/apis/{scripts.MPIJOB_API}/mpijobs?limit=1"
# Effects of taints with which a node takes no pod that does not tolerate them.
_TAKES_NONE = ("NoSchedule", "NoExecute")


def look(api: Api) -> Plain:
    """Return what there is; a problem, where it cannot be used."""
    try:
        nodes = [node for node in api.get(_NODES)["items"] if _takes_pods(node)]
        api.get(_MPIJOBS)
    except UnreachableError as error:
        return Plain(problem=f"the plain Kubernetes does not answer ({error}); start it")
    except NotFoundError:
        return Plain(
            problem=f"the plain Kubernetes has no MPIJobs ({scripts.MPIJOB_API}); install the MPI Operator there"
        )
    except KubeError as error:
        return Plain(problem=f"the plain Kubernetes refuses: {error}; its kubeconfig must be an administrator's")
    if not nodes:
        return Plain(problem="no node of the plain Kubernetes takes pods; see `kubectl get nodes` there")
    return Plain(
        nodes=len(nodes),
        cpus=min(int(parse(node["status"]["allocatable"]["cpu"])) for node in nodes),
        memory_mib=min(int(parse(node["status"]["allocatable"]["memory"]) / MIB) for node in nodes),
        programs=tuple(sorted({words for node in nodes for words in _programs(node)})),
    )


def _takes_pods(node: Mapping[str, Any]) -> bool:
    taints = node["spec"].get("taints", [])
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not any(taint["effect"] in _TAKES_NONE for taint in taints)


def _programs(node: Mapping[str, Any]) -> tuple[str, str]:
    info = node["status"]["nodeInfo"]
    return f"kubelet {info['kubeletVersion']}", info["containerRuntimeVersion"].replace("://", " ")
