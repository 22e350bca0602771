"""What is left when the workload is removed; and that kubectl and Helm bring it as well."""

import re

import pytest

from tests.support.wait import wait

pytestmark = pytest.mark.full
LEFT = "get namespaces,crds,clusterroles,clusterrolebindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings"
OURS = re.compile(r"/(mpi-operator|mpijobs\.kubeflow|kubeflow-mpijobs|isthmus-mpi)")


@pytest.fixture(scope="module", autouse=True)
def there_again(mine, workload):
    """The tests that follow find it."""
    yield
    mine.isthmus("workloads add mpi")


def left(cluster):
    """Names of what is there of the workload, in the whole cluster."""
    names = cluster.kubectl(f"{LEFT} --output name").split()
    return [name for name in names if OURS.search(name)]


@pytest.fixture
def removed(mine):
    """A cluster without the workload, before and after."""
    mine.isthmus("workloads remove mpi --force")
    assert left(mine) == []
    yield mine
    mine.isthmus("workloads remove mpi --force")


def test_active_jobs_are_not_ended_by_mistake(jobs, mine, login):
    jobs.make("busy", launcher={"command": ["sleep", "1000"]})
    reported = login.try_as(mine.user, "isthmus workloads remove mpi")
    assert reported.rc == 1
    assert "MPIJob of yours would end with it" in reported.stderr
    assert jobs.get("busy")
    assert mine.isthmus("workloads remove mpi --force")["removed"]
    assert left(mine) == []
    wait(lambda: "busy" not in login.run_as(mine.user, "squeue --me --noheader --format=%j"))


def test_removing_again_is_no_error(removed):
    assert not removed.isthmus("workloads remove mpi")["removed"]


def test_plain_kubectl_brings_it(removed, workload):
    removed.kubectl(f"apply -f {workload['manifest']}")
    removed.kubectl("--namespace mpi-operator rollout status deployment/mpi-operator --timeout=180s")
    assert removed.isthmus("workloads status mpi")["workloads"][0]["cluster"]["ready"]


def test_helm_brings_it_and_takes_it_away(removed, workload, login):
    helm = "export KUBECONFIG=$HOME/.isthmus/kubeconfig; helm --namespace mpi-operator"
    login.run_as(
        removed.user, f"{helm} install mpi-operator {workload['chart']} --create-namespace --wait --timeout 180s"
    )
    assert removed.isthmus("workloads status mpi")["workloads"][0]["cluster"]["ready"]
    login.run_as(removed.user, f"{helm} uninstall mpi-operator --wait")
    # Helm never deletes definitions, nor a namespace that it made.
    wait(lambda: left(removed), lambda names: len(names) == 2)
