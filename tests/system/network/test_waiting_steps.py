"""Steps that wait for CPUs of their own job begin when these are free, in a pod as on a node."""

import pytest

from tests.support.clusters import jobs

# srun asks again by itself after 60 s at the earliest.
LATE_S = 20
NETWORKS = ["private", "none"]


@pytest.fixture
def printed(login, controller, user):
    """What a job with one CPU prints."""

    def run(network, command):
        job = jobs.submit(login, user, f"--pod-network={network} --ntasks=1 --mem=50", command)
        jobs.wait_for_job(controller, job, "COMPLETED")
        text = jobs.output(login, user, job)
        assert "error" not in text
        return [float(line) for line in text.splitlines() if line[:1].isdigit()]

    yield run
    login.run_as(user, "rm -f .isthmus-test-*.out")


@pytest.mark.parametrize("network", NETWORKS)
def test_step_begins_when_the_one_before_it_has_ended(printed, network):
    ended, began = printed(network, "srun sh -c 'sleep 4; date +%s.%N' & sleep 1; srun date +%s.%N; wait")
    assert 0 < began - ended < LATE_S


@pytest.mark.parametrize("network", NETWORKS)
def test_steps_that_wait_together_all_begin(printed, network):
    times = printed(network, "for i in 1 2 3 4 5 6; do srun date +%s.%N & done; wait")
    assert len(times) == 6
    assert max(times) - min(times) < LATE_S


def test_step_begins_when_one_from_outside_has_ended(login, controller, user):
    """No srun in the pod sees that one end."""
    with jobs.running(login, controller, user, "--pod-network --ntasks=1 --mem=50") as job:
        outside = f"srun --quiet --jobid={job} --pod-network sh -c 'sleep 4; date +%s.%N'"
        within = f"srun --quiet --overlap --jobid={job} sh -c 'sleep 1; srun date +%s.%N'"
        times = login.run_as(user, f"{outside} & {within}; wait").split()
    ended, began = sorted(map(float, times))
    assert began - ended < LATE_S
