"""An MPIJob per MPI, from the site's examples: where its ranks ran is what counts, not that it ended well."""

import pytest

from tests.support.wait import wait


@pytest.fixture(scope="module")
def pi(jobs):
    """All of them at once, ended."""
    for mpi in jobs.examples:
        jobs.make(f"pi-{mpi}", mpi)
    for mpi in jobs.examples:
        jobs.ended(f"pi-{mpi}", timeout_s=300)
    return jobs


def test_each_rank_is_on_a_worker_of_its_own(pi, mpi):
    """Open MPI 5 that does not know its hosts would run all ranks in the launcher."""
    assert pi.hosts(f"pi-{mpi}") == {f"pi-{mpi}-worker-0": 1, f"pi-{mpi}-worker-1": 1}
    assert "pi is approximately 3.14" in pi.log(f"pi-{mpi}")


def test_workers_go_when_the_job_has_ended(pi, mpi):
    wait(lambda: pi.workers(f"pi-{mpi}"), lambda left: left == [])
    assert len(pi.pods(f"pi-{mpi}")) == 1


def test_status_reports_them(pi, mine, workload):
    (reported,) = mine.isthmus("workloads status mpi")["workloads"]
    assert (reported["cluster"]["ready"], reported["cluster"]["version"]) == (True, workload["version"])
    assert reported["cluster"]["objects"] == {"Succeeded": len(pi.examples)}


def test_operator_is_a_small_job_of_the_user(mine, login, workload):
    jobs = login.run_as(mine.user, "squeue --me --noheader --format='%j %C %m'").splitlines()
    (operator,) = [line.split()[1:] for line in jobs if line.startswith("mpi-operator")]
    assert operator[0] == "1"


def test_adding_again_changes_nothing(mine, workload):
    before = mine.kubectl("--namespace mpi-operator get pods --output name")
    (reported,) = mine.isthmus("workloads add mpi")["workloads"]
    assert reported["cluster"]["ready"]
    assert mine.kubectl("--namespace mpi-operator get pods --output name") == before
