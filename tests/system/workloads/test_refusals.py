"""MPIJobs that cannot run, or go on: each ends with a reason where its user looks."""

import re

import pytest

from tests.support.clusters.user_clusters import POD_S
from tests.support.wait import wait

pytestmark = pytest.mark.full


@pytest.fixture
def job(jobs, request):
    """A function that makes the test's job; it is gone at the end."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:20].strip("-")
    yield lambda **changes: jobs.make(name, **changes)["metadata"]["name"]
    jobs.remove(name)


def said(jobs, pod):
    """All messages of a pod's status and events."""
    return str(jobs.space.status(pod)) + str(jobs.space.events(pod))


def test_too_large(jobs, job):
    name = job(worker={"resources": {"requests": {"memory": "4Ti"}}})
    wait(lambda: said(jobs, f"{name}-worker-0"), lambda reported: "can never start" in reported)


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
    assert re.search(rf"no sshd answers at {name}-worker-[01]", jobs.log(name))
    assert "/usr/sbin/sshd" in said(jobs, f"{name}-worker-0")


def test_wrong_field(jobs, job):
    """The operator, not the API server, knows that a launcher is one."""
    name = job(spec={"mpiReplicaSpecs": {}})
    wait(
        lambda: jobs.space.events(name), lambda reported: any(each["reason"] == "ValidationError" for each in reported)
    )


@pytest.mark.parametrize("attempt", range(3))
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_worker_that_dies(jobs, job, mine, login, mpi, attempt):
    """Slurm ends the job of a worker, as it does when a node fails; sshd ends well, and most often so does PRRTE."""
    rank = "echo up; exec sleep 1000"
    name = job(
        mpi=mpi,
        policy={"backoffLimit": 0, "cleanPodPolicy": "None"},
        launcher={"command": ["mpirun", "-n", "2", "sh", "-c", rank]},
    )
    wait(lambda: jobs.condition(name, "Running"), timeout_s=POD_S)
    wait(lambda: jobs.log(name), lambda written: written.count("up") == 2, timeout_s=POD_S)
    login.run_as(mine.user, f"scancel --name={name}-worker-1")
    assert jobs.ended(name, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert mpi == "mpich" or "lost communication" in jobs.log(name)
    worker = wait(lambda: jobs.space.status(f"{name}-worker-1"), lambda status: status["phase"] == "Failed")
    assert worker["reason"] == "CANCELLED"


def test_rank_out_of_memory(jobs, job):
    """The worker's first process is sshd, which lives on: the OOM is reported by an event of the pod, and by mpirun."""
    hungry = '[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec sleep 1000; exec tail /dev/zero'
    name = job(
        policy={"backoffLimit": 0, "cleanPodPolicy": "None"},
        launcher={"command": ["mpirun", "-n", "2", "sh", "-c", hungry]},
        worker={"resources": {"requests": {"cpu": "1", "memory": "64Mi"}}},
    )
    assert jobs.ended(name, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert "signal 9 (Killed)" in jobs.log(name)
    killed = lambda reported: any(each["reason"] == "OOMKilling" for each in reported)  # noqa: E731 -- one use
    wait(lambda: jobs.space.events(f"{name}-worker-1"), killed)
    assert not killed(jobs.space.events(f"{name}-worker-0"))


@pytest.mark.parametrize(
    ("launchers", "workers", "why"),
    [("openmpi", "mpich", "/usr/bin/prted: No such file"), ("mpich", "openmpi", "hydra_pmi_proxy: No such file")],
)
def test_workers_of_another_mpi(jobs, job, launchers, workers, why):
    image = jobs.images[f"mpi-operator-{workers}"]
    name = job(mpi=launchers, policy={"backoffLimit": 0}, worker={"image": image})
    assert jobs.ended(name, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert why in jobs.log(name)
