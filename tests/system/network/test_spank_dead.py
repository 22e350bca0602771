"""The node's daemon is dead: who does not ask does not notice, who asks gets an error."""

import time

import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

pytestmark = pytest.mark.disruptive
MISSED = "isthmus: job {job} cannot use its pod network on {node}, so the task was not started: "
# A dead daemon is known at once; the rest is Slurm's own time.
BOUND_S = 60


@pytest.fixture
def node(computes, controller):
    """A compute node whose daemon is dead meanwhile; Slurm must keep the node all the time."""
    node = computes[0]
    node.output("systemctl stop isthmus-networkd")
    yield node
    node.output("systemctl start isthmus-networkd")
    jobs.wait_for_nodes(controller, node.name)


@pytest.mark.parametrize("option", ["", "--pod-network=none"])
def test_job_that_does_not_ask_runs(login, user, node, option):
    assert login.run_as(user, f"srun {option} --nodelist={node.name} hostname") == node.name


def test_step_that_asks_fails_clearly_in_time(login, user, node):
    begun_s = time.monotonic()
    failed = login.try_as(user, f"srun --pod-network --nodelist={node.name} hostname")
    assert time.monotonic() - begun_s < BOUND_S
    assert (failed.rc, failed.stdout) == (1, "")
    (line,) = [line for line in failed.stderr.splitlines() if "isthmus: " in line]
    assert "the network daemon at /run/isthmus/networkd-root.sock cannot be reached" in line


def test_batch_job_that_asks_fails_clearly(login, controller, user, node):
    job = jobs.submit(login, user, f"--pod-network --nodelist={node.name}", "echo it ran")
    jobs.wait_for_job(controller, job, "FAILED", timeout_s=BOUND_S)
    reported = jobs.output(login, user, job)
    assert MISSED.format(job=job, node=node.name) in reported
    assert "it ran" not in reported


def test_every_task_of_the_node_fails_and_one_reports(login, user, node):
    failed = login.try_as(user, f"srun --pod-network --nodelist={node.name} --ntasks=4 --mem-per-cpu=20 echo it ran")
    assert (failed.rc, failed.stdout) == (1, "")
    assert failed.stderr.count("so the task was not started") == 1


def test_job_keeps_its_pod_over_a_restart_of_the_daemon(login, controller, user, computes):
    """Its tasks run on, and a new step enters."""
    node = computes[0]
    options = f"--pod-network --nodelist={node.name} --mem=50"
    with jobs.running(login, controller, user, options, "echo here; sleep 300") as job:
        # A task that begins while the daemon is gone fails.
        wait(lambda: jobs.written(login, user, job))
        step = f"srun --overlap --mem=20 --jobid={job} true"
        node.output("systemctl restart isthmus-networkd")
        login.run_as(user, step)
        assert jobs.state(controller, job) == "RUNNING"
