"""MPIJobs that cannot run: each ends with a reason where its user looks."""

import pytest

from tests.support.wait import wait

pytestmark = pytest.mark.full


@pytest.fixture
def job(jobs, request):
    """A function that makes the test's job; it is gone at the end."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:20].strip("-")
    yield lambda **changes: jobs.make(name, **changes)["metadata"]["name"]
    jobs.remove(name)


def said(jobs, pod):
    """All that a pod's status and events tell."""
    return str(jobs.space.status(pod)) + str(jobs.space.events(pod))


def test_too_large(jobs, job):
    name = job(worker={"resources": {"requests": {"memory": "4Ti"}}})
    wait(lambda: said(jobs, f"{name}-worker-0"), lambda told: "sbatch" in told or "memory" in told.lower())


def test_too_few_slots(jobs, job):
    """One rank more than the hostfile has."""
    name = job(policy={"backoffLimit": 0}, launcher={"command": ["mpirun", "-n", "3", "/home/mpiuser/pi"]})
    assert jobs.ended(name, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert "There are not enough slots available" in jobs.log(name)


def test_no_sshd(jobs, job):
    name = job(
        spec={"launcherCreationPolicy": "AtStartup"},
        policy={"backoffLimit": 0},
        launcher={"env": [{"name": "MPI_WAIT_S", "value": "5"}]},
        worker={"image": jobs.space.images["busybox"]},
    )
    assert jobs.ended(name, "Failed")
    assert f"no sshd answers at {name}-worker-0" in jobs.log(name)
    assert "/usr/sbin/sshd" in said(jobs, f"{name}-worker-0")


def test_wrong_field(jobs, job):
    """The operator, not the API server, knows that a launcher is one."""
    name = job(spec={"mpiReplicaSpecs": {}})
    wait(lambda: jobs.space.events(name), lambda told: any(each["reason"] == "ValidationError" for each in told))
