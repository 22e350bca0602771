"""What a plain Kubernetes has, or why it cannot be used."""

import pytest

from isthmus.bench.plain.cluster import look
from isthmus.bench.plan import Plain
from isthmus.clients.kube.errors import NotFoundError, RefusedError, UnreachableError

MPIJOBS = "/apis/kubeflow.org/v2beta1/mpijobs?limit=1"


def node(cpu="2", memory="24000Mi", ready="True", taint="", **spec):
    taints = {"taints": [{"key": "a", "effect": taint}]} if taint else {}
    return {
        "spec": {**taints, **spec},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://1.7.24"},
        },
    }


class Api:
    """Answers two questions, or raises what is said."""

    def __init__(self, nodes, mpijobs=None):
        self._answers = {"/api/v1/nodes": nodes, MPIJOBS: mpijobs or {"items": []}}

    def get(self, path):
        found = self._answers[path]
        if isinstance(found, Exception):
            raise found
        return {"items": found} if isinstance(found, list) else found


def test_smallest_node_counts():
    found = look(Api([node(), node(cpu="1930m", memory="4Gi"), node(memory="16384000Ki")]))
    assert found == Plain(nodes=3, cpus=1, memory_mib=4096, programs=("containerd 1.7.24", "kubelet v1.36.3"))


@pytest.mark.parametrize(
    "other", [node(ready="False"), node(ready="Unknown"), node(taint="NoSchedule"), node(taint="NoExecute")]
)
def test_nodes_that_take_no_pods_do_not_count(other):
    assert look(Api([node(cpu="4"), other])).nodes == 1
    assert look(Api([other])).problem.startswith("no node of the plain Kubernetes takes pods")


def test_preference_keeps_no_pod_away():
    assert look(Api([node(taint="PreferNoSchedule")])).nodes == 1


@pytest.mark.parametrize(
    ("nodes", "mpijobs", "problem"),
    [
        (
            UnreachableError("https://head:6443: refused"),
            None,
            "does not answer (https://head:6443: refused); start it",
        ),
        (RefusedError("nodes is forbidden", 403), None, "refuses: nodes is forbidden; its kubeconfig must be an adm"),
        ([node()], NotFoundError("no", 404), "has no MPIJobs (kubeflow.org/v2beta1); install the MPI Operator there"),
        ([node()], UnreachableError("x"), "does not answer (x); start it"),
    ],
)
def test_what_cannot_be_used_says_why(nodes, mpijobs, problem):
    assert look(Api(nodes, mpijobs)).problem.startswith(f"the plain Kubernetes {problem}")
