"""The fields of an MPIJob, each with what a user expects of it."""

import json

import pytest

from tests.support.wait import wait

pytestmark = pytest.mark.full
SLEEPS = {"command": ["sleep", "1000"]}
ENDS = {"command": ["true"]}


@pytest.fixture
def job(jobs, request):
    """A function that makes the test's job; it is gone at the end."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:20].strip("-")
    yield lambda **changes: jobs.make(name, **changes)["metadata"]["name"]
    jobs.remove(name)


def running(jobs, name, count):
    """Wait until so many of a job's pods run."""
    pods = f"pods --selector training.kubeflow.org/job-name={name} --field-selector status.phase=Running"
    wait(lambda: len(jobs.space.get(pods)["items"]), count.__eq__, timeout_s=180, interval_s=1)


def suspend(jobs, name, value):
    patch = json.dumps({"spec": {"runPolicy": {"suspend": value}}})
    jobs.space.kubectl(f"patch mpijob {name} --type merge --patch '{patch}'")


def mpirun(count):
    return {"command": ["mpirun", "-n", str(count), "/home/mpiuser/pi"]}


def test_slots(jobs, job, mpi):
    name = job(mpi=mpi, spec={"slotsPerWorker": 2}, launcher=mpirun(4))
    jobs.ended(name)
    assert jobs.hosts(name) == {f"{name}-worker-0": 2, f"{name}-worker-1": 2}


def test_with_launcher(jobs, job, mpi):
    """A launcher knows itself by another name than the hostfile has."""
    spec = {"runLauncherAsWorker": True, "launcherCreationPolicy": "AtStartup"}
    name = job(mpi=mpi, spec=spec, launcher=mpirun(3))
    jobs.ended(name)
    assert jobs.hosts(name) == {f"{name}-launcher": 1, f"{name}-worker-0": 1, f"{name}-worker-1": 1}


def test_as_root(jobs, job, mpi):
    """What the operator does where nothing is said: sshd as root, of the pod alone."""
    root = {"securityContext": None}
    name = job(mpi=mpi, spec={"sshAuthMountPath": "/root/.ssh"}, launcher=root, worker={**root, "command": None})
    jobs.ended(name)
    assert len(jobs.hosts(name)) == 2


def test_at_startup(jobs, job):
    """A launcher that is there first waits for its workers within ssh."""
    name = job(spec={"launcherCreationPolicy": "AtStartup"}, policy={"backoffLimit": 0})
    jobs.ended(name)
    assert len(jobs.hosts(name)) == 2


def test_wait_for_ready(jobs, job):
    name = job(worker=SLEEPS)
    running(jobs, name, 2)
    assert jobs.pods(name) == [f"{name}-worker-0", f"{name}-worker-1"]
    assert jobs.space.try_kubectl(f"get job {name}-launcher").rc != 0


@pytest.mark.parametrize(("policy", "left"), [("None", 2), ("All", 0)])
def test_clean_pods(jobs, job, policy, left):
    name = job(policy={"cleanPodPolicy": policy}, launcher=ENDS)
    jobs.ended(name)
    wait(lambda: len(jobs.workers(name)), left.__eq__)


def test_ttl(jobs, job):
    name = job(policy={"ttlSecondsAfterFinished": 1}, launcher=ENDS)
    jobs.ended(name)
    wait(lambda: jobs.space.try_kubectl(f"get job {name}-launcher").rc != 0)


def test_deadline(jobs, job):
    name = job(policy={"activeDeadlineSeconds": 5}, launcher=SLEEPS)
    assert jobs.ended(name, "Failed")["reason"] == "DeadlineExceeded"
    wait(lambda: jobs.workers(name), lambda left: left == [])


def test_backoff(jobs, job):
    name = job(policy={"backoffLimit": 1}, launcher={"command": ["false"]})
    assert jobs.ended(name, "Failed")["reason"].startswith("BackoffLimitExceeded")
    assert jobs.get(name)["status"]["replicaStatuses"]["Launcher"]["failed"] == 2


def test_suspended(jobs, job):
    name = job(policy={"suspend": True})
    wait(lambda: jobs.condition(name, "Suspended"))
    assert jobs.pods(name) == []
    jobs.space.kubectl(f'patch mpijob {name} --type merge --patch \'{{"spec":{{"runPolicy":{{"suspend":false}}}}}}\'')
    jobs.ended(name)
    assert len(jobs.hosts(name)) == 2


def test_suspend_running(jobs, job, mine, login):
    name = job(launcher=SLEEPS)
    running(jobs, name, 3)
    jobs.space.kubectl(f'patch mpijob {name} --type merge --patch \'{{"spec":{{"runPolicy":{{"suspend":true}}}}}}\'')
    wait(lambda: jobs.pods(name), lambda left: left == [])
    wait(lambda: name not in login.run_as(mine.user, "squeue --me --noheader --format=%j"))


def test_managed_by_another(jobs, job):
    name = job(policy={"managedBy": "kueue.x-k8s.io/multikueue"})
    # The operator has seen a later one, so it has seen this one as well.
    other = jobs.make("seen-after", policy={"suspend": True})["metadata"]["name"]
    wait(lambda: jobs.condition(other, "Suspended"))
    assert "status" not in jobs.get(name)
    assert jobs.pods(name) == []
    jobs.remove(other)


def test_deleted(jobs, job, mine, login):
    name = job(launcher=SLEEPS)
    running(jobs, name, 3)
    jobs.remove(name)
    left = f"get pods,services,configmaps,secrets --selector app={name} --output name"
    wait(lambda: jobs.space.kubectl(left), "".__eq__)
    wait(lambda: name not in login.run_as(mine.user, "squeue --me --noheader --format=%j"))
