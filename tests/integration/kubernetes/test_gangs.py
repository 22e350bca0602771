"""Gangs of pods, on a real API server: PodGroups of scheduler-plugins and Kubernetes' own, and Slurm a fake."""

from contextlib import suppress

import pytest

from isthmus.model.pod_job import JobState
from tests.support.servers.api_user import SOON
from tests.support.wait import stays, wait

KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {"kind": "PodGroup", "plural": "podgroups"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def served(api):
    """Whether the kind can be made already; what is not known yet is answered by no JSON."""
    with suppress(ValueError):
        return "items" in api.get(GROUPS)
    return False


@pytest.fixture
def group(api, request):
    """Make the test's PodGroup; return a function that makes pods of it."""
    if api.get(f"{CRDS}/{KIND['metadata']['name']}").get("code"):
        api.create(CRDS, KIND)
    wait(lambda: served(api), **SOON)
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40]
    body = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
    api.create(GROUPS, body | {"spec": {"minMember": 2}})
    return lambda **container: api.pod(container=container, labels={"scheduling.x-k8s.io/pod-group": name})


def cpus(count):
    return {"resources": {"requests": {"cpu": str(count)}}}


def says(api, pod, text):
    """Wait until a pod says why it waits."""
    wait(lambda: api.status(pod).get("message", ""), lambda reported: text in reported, **SOON)


def test_gang_starts_when_it_is_complete(bed, api, group):
    first = group()
    says(api, first, "Waits for 1 more of the 2 pods")
    assert not bed.slurm.of(first["metadata"]["uid"])
    second = group()
    for pod in (first, second):
        api.wait_phase(pod, "Running")
        assert len(bed.slurm.of(pod["metadata"]["uid"])) == 1
        assert "message" not in api.status(pod)


def test_gang_that_can_never_fit_says_so(bed, api, group):
    pods = [group(**cpus(32)), group(**cpus(33))]
    for pod in pods:
        says(api, pod, "can never start: one of its pods needs 33 CPUs of a node, and the largest has 32; ask for less")
        assert api.status(pod)["reason"] == "Unschedulable"
    for pod in pods:
        api.delete(pod)
        api.wait_gone(pod)


def test_gang_waits_until_all_of_it_is_free(bed, api, group):
    bed.slurm.free = {"c1": 32, "c2": 31}
    pods = [group(**cpus(32)), group(**cpus(32))]
    says(api, pods[0], "they need 64 CPUs, 63 are free")
    assert not bed.slurm.of(pods[0]["metadata"]["uid"])
    bed.slurm.free = {"c1": 32, "c2": 32}
    for pod in pods:
        api.wait_phase(pod, "Running")


def test_jobs_of_a_gang_are_given_back_when_one_gets_no_node(bed, api, group):
    bed.slurm.full = True
    pods = [group(), group()]
    jobs = lambda pod: [job.state for job in bed.slurm.of(pod["metadata"]["uid"])]  # noqa: E731 -- one use
    wait(lambda: [jobs(pod) for pod in pods], lambda found: all(found), **SOON)
    first = bed.slurm.of(pods[0]["metadata"]["uid"])[0].id
    bed.slurm.start(first)
    supervisor = wait(lambda: bed.supervisors.get(pods[0]["metadata"]["uid"]), **SOON)
    because = "the plan of a pod that may start is sent when its supervisor connects"
    stays(lambda: supervisor.plans, lambda plans: not plans, seconds=1, because=because)
    bed.slurm.full = False
    for pod in pods:
        api.wait_phase(pod, "Running")
        *given_back, last = jobs(pod)
        assert (set(given_back), last) == ({JobState.CANCELLED}, JobState.RUNNING)


def test_gang_of_kubernetes_own_api(bed, api, api_server):
    meta = {"name": "own"}
    version = api_server.groups
    body = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": meta}
    own = f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups"
    api.create(own, body | {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    first = api.pod(schedulingGroup={"podGroupName": "own"})
    says(api, first, "Waits for 1 more of the 2 pods that PodGroup own needs")
    second = api.pod(schedulingGroup={"podGroupName": "own"})
    for pod in (first, second):
        api.wait_phase(pod, "Running")
