import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

pytestmark = pytest.mark.usefixtures("managed")
MEMORY_MIB = 60


@pytest.fixture
def compute(computes, login, user):
    """A compute node on which the user has no job."""
    wait(lambda: login.run_as(user, "squeue --me --noheader --states=RUNNING,COMPLETING"), lambda shown: shown == "")
    return computes[0]


def ssh(login, user, node, command):
    # The tests' own connection would fail with 255; this one ends with 1.
    return login.try_as(user, f"ssh -o BatchMode=yes {node.name} '{command}' || exit 1")


def test_ssh_without_a_job_is_refused(login, user, compute):
    refused = ssh(login, user, compute, "hostname")
    assert refused.rc == 1
    assert "Access denied by pam_slurm_adopt: you have no active jobs on this node" in refused.stderr + refused.stdout


def test_ssh_with_a_job_is_adopted(login, controller, user, compute):
    with jobs.running(login, controller, user, f"--nodelist={compute.name} --mem={MEMORY_MIB}") as job:
        adopted = ssh(login, user, compute, "cat /proc/self/cgroup")
        assert adopted.rc == 0, adopted.stderr
        assert f"/job_{job}/step_extern" in adopted.stdout
        greedy = ssh(login, user, compute, "head -c 300M /dev/zero | tail -c 300M | wc -c")
        assert greedy.stdout.strip() == "0"


def test_ssh_session_ends_with_its_job(login, controller, user, compute):
    with jobs.running(login, controller, user, f"--nodelist={compute.name}"):
        assert ssh(login, user, compute, "nohup sleep 299 >/dev/null 2>&1 &").rc == 0
        assert "sleep 299" in compute.output("ps -eo args")
    wait(lambda: compute.output("ps -eo args"), lambda shown: "sleep 299" not in shown)


def test_job_of_another_opens_nothing(login, controller, user, other_user, compute):
    with jobs.running(login, controller, user, f"--nodelist={compute.name}"):
        assert ssh(login, other_user, compute, "hostname").rc == 1
