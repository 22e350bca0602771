"""Adding, looking and removing, against a stand-in whose controllers the test plays."""

import pytest

from isthmus.clients.kube.errors import KubeError
from isthmus.workloads import installing
from isthmus.workloads.offer import Workload, WorkloadError
from tests.support.fakes.api_objects import ApiObjects

MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: mpi-operator}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mpijobs.kubeflow.org}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mpi-operator, namespace: mpi-operator, labels: {app.kubernetes.io/version: 1.2.3}}
"""
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mpijobs.kubeflow.org"
DEPLOYMENT = "/apis/apps/v1/namespaces/mpi-operator/deployments/mpi-operator"
PODS = "/api/v1/namespaces/mpi-operator/pods"


@pytest.fixture
def mpi(tmp_path):
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    return Workload(
        "mpi", "MPI", "1.2.3", "Apache-2.0", tmp_path, "mpi-operator", "mpi-operator", "MPIJob",
        "/apis/kubeflow.org/v2beta1/mpijobs", {},
    )  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No look waits for the next one; time goes on by a second with each."""
    clock = iter(range(10_000))
    monkeypatch.setattr(installing.time, "sleep", lambda _: None)
    monkeypatch.setattr(installing.time, "monotonic", lambda: next(clock))


def controllers(api):
    """What a cluster makes of these objects: the kind is served, the Deployment has its pod."""
    if CRD in api.objects:
        api.objects[CRD]["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    if DEPLOYMENT in api.objects:
        api.objects[DEPLOYMENT]["metadata"] |= {"generation": 1}
        api.objects[DEPLOYMENT]["status"] = {"observedGeneration": 1, "availableReplicas": 1}


def job(name, *conditions):
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "mine"},
        "status": {"conditions": [{"type": each, "status": "True"} for each in conditions]},
    }


@pytest.fixture
def api(mpi):
    """A cluster with the workload in it."""
    found = ApiObjects(controllers)
    installing.add(found, mpi, lambda _: None, 10)
    found.done.clear()
    return found


def put(api, *items):
    for item in items:
        api.objects[api.path(item)] = item


@pytest.fixture
def example(mpi):
    (mpi.folder / "examples").mkdir()
    (mpi.folder / "examples/pi.yaml").write_text(
        "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi, namespace: default}}"
    )


def test_add_ends_when_users_objects_are_accepted(mpi, example):
    api = ApiObjects(controllers)
    api.refusals = [KubeError("policy mpi: no schema of MPIJob", 422)] * 2
    assert installing.add(api, mpi, lambda _: None, 10).ready
    assert api.done[-3:] == [("dry run", "MPIJob", "mpi-accepted")] * 3
    assert not installing.state(api, mpi).objects


def test_add_waits_for_no_policy_for_ever(mpi, example):
    api = ApiObjects(controllers)
    api.refusals = [KubeError("policy of mine: no MPIJobs here", 422)] * 1000
    assert installing.add(api, mpi, lambda _: None, 10).ready
    assert 900 < len(api.refusals) < 1000


def test_add_ends_when_it_is_ready(mpi):
    api, reported = ApiObjects(controllers), []
    now = installing.add(api, mpi, reported.append, 10)
    assert now == installing.State(added=True, ready=True, version="1.2.3")
    assert [kind for _, kind, _ in api.done] == ["Namespace", "CustomResourceDefinition", "Deployment"]
    assert reported[-1] == "waiting for the pod of mpi-operator"


def test_nothing_of_a_kind_is_made_before_the_kind_is_served(mpi):
    api = ApiObjects()
    with pytest.raises(WorkloadError, match="MPIJob is not served after 30 s"):
        installing.add(api, mpi, lambda _: None, 10)
    assert ("apply", "Deployment", "mpi-operator") not in api.done


def test_operator_that_does_not_start_is_reported_with_its_reason(mpi):
    def stuck(api):
        controllers(api)
        if DEPLOYMENT in api.objects:
            del api.objects[DEPLOYMENT]["status"]["availableReplicas"]
        waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
        api.objects[f"{PODS}/one"] = {"status": {"containerStatuses": [{"state": {"waiting": waiting}}]}}

    with pytest.raises(WorkloadError) as refused:
        installing.add(ApiObjects(stuck), mpi, lambda _: None, 10)
    assert "not ready after 10 s: ImagePullBackOff: no such image; see `kubectl --namespace mpi-operator" in str(
        refused.value
    )


def test_pod_that_waits_for_its_job_says_why(mpi):
    def pending(api):
        controllers(api)
        if DEPLOYMENT in api.objects:
            api.objects[DEPLOYMENT]["status"] = {}
        said = {"type": "PodScheduled", "status": "False", "reason": "Resources", "message": "job 7 is pending"}
        api.objects[f"{PODS}/one"] = {"status": {"conditions": [said]}}

    now = installing.add(ApiObjects(pending), mpi, lambda _: None, 0)
    assert (now.ready, now.problem) == (False, "Resources: job 7 is pending")


def test_state_of_an_empty_cluster(mpi):
    assert installing.state(ApiObjects(), mpi) == installing.State()


def test_state_counts_jobs_by_how_they_are(mpi, api):
    put(
        api,
        job("a", "Created", "Running"),
        job("b", "Created", "Succeeded"),
        job("c", "Created", "Failed"),
        job("d"),
        job("e", "Created", "Suspended"),
    )
    reported = installing.state(api, mpi).objects
    assert reported == {"Running": 1, "Succeeded": 1, "Failed": 1, "New": 1, "Suspended": 1}


@pytest.mark.parametrize(("status", "counted"), [("False", "Created"), ("True", "Running")])
def test_condition_that_is_over_does_not_count(mpi, api, status, counted):
    item = job("a", "Created", "Running")
    item["status"]["conditions"][1]["status"] = status
    put(api, item)
    assert installing.state(api, mpi).objects == {counted: 1}


def test_remove_takes_the_reverse_order_and_ended_jobs(mpi, api):
    put(api, job("over", "Succeeded"))
    assert installing.remove(api, mpi, lambda _: None, 10, force=False)
    assert [kind for _, kind, _ in api.done] == ["MPIJob", "Deployment", "CustomResourceDefinition", "Namespace"]
    assert api.objects == {}


def test_remove_with_a_job_that_runs_is_refused(mpi, api):
    put(api, job("busy", "Running"))
    with pytest.raises(WorkloadError, match=r"1 MPIJob of yours would end with it.*--force. Nothing was removed"):
        installing.remove(api, mpi, lambda _: None, 10, force=False)
    assert api.done == []
    assert installing.remove(api, mpi, lambda _: None, 10, force=True)
    assert api.objects == {}


def test_definition_goes_when_no_pod_of_a_job_is_left(mpi, api):
    put(api, job("busy", "Running"))
    api.objects[f"{PODS}/worker"] = {"metadata": {"name": "worker", "ownerReferences": [{"name": "busy"}]}}
    with pytest.raises(WorkloadError, match="a MPIJob is still there after 10 s; try again"):
        installing.remove(api, mpi, lambda _: None, 10, force=True)
    assert CRD in api.objects
    del api.objects[f"{PODS}/worker"]
    assert installing.remove(api, mpi, lambda _: None, 10, force=True)
    assert CRD not in api.objects


def test_remove_of_what_is_not_there_is_success(mpi):
    assert not installing.remove(ApiObjects(), mpi, lambda _: None, 10, force=False)


def test_namespace_that_stays_is_reported(mpi, api):
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mpi-operator"}}
    api.after = lambda objects: put(objects, namespace)
    with pytest.raises(WorkloadError, match="namespace mpi-operator is still there after 10 s; try again"):
        installing.remove(api, mpi, lambda _: None, 10, force=False)


def test_server_that_does_not_answer_is_no_empty_cluster(mpi):
    class Silent(ApiObjects):
        def get(self, path):
            raise KubeError("did not answer")

    with pytest.raises(KubeError, match="did not answer"):
        installing.state(Silent(), mpi)
