import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

QUEUE = 2


@pytest.fixture
def first_s():
    """How long the first job of the queue runs."""
    return 4


@pytest.fixture
def queue(first_s, login, controller, user, computes, whole):
    """Jobs in the queue: one runs, the other wants the same whole node."""
    submitted = [
        jobs.submit(login, user, f"--nodelist={computes[0].name} --exclusive --mem=100", f"sleep {seconds}")
        for seconds in [first_s, *[4] * (QUEUE - 1)]
    ]
    # On a busy machine it may have ended before anybody looks; the other is the queue.
    jobs.wait_for_job(controller, submitted[0], "RUNNING", "COMPLETED")
    yield submitted
    jobs.cancel(controller, *submitted)


def assert_all_complete(controller, queue):
    for job in queue:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=240)
        restarts = controller.output(f"sacct --noheader --allocations --duplicates --parsable2 --format=JobID -j {job}")
        assert restarts.split() == [job]


@pytest.mark.parametrize("daemon", ["munge", "slurmctld", "slurmdbd", "mariadb"])
def test_queue_survives_a_restart_on_the_controller(daemon, controller, queue):
    controller.output(f"systemctl restart {daemon}")
    wait(lambda: controller.run("scontrol ping && sacctmgr --noheader show cluster").rc == 0)
    assert_all_complete(controller, queue)


@pytest.mark.parametrize("daemon", ["munge", "slurmd"])
def test_running_job_survives_a_restart_on_its_node(daemon, controller, computes, queue):
    computes[0].output(f"systemctl restart {daemon}")
    assert_all_complete(controller, queue)


@pytest.fixture
def saved(controller, queue):
    """The queue, once slurmctld has written it down."""
    jobs.wait_until_saved(controller, queue[-1])
    return queue


# The first job outlives the crash: an end that slurmctld learnt of but had not written down is lost with it.
@pytest.mark.parametrize("first_s", [40])
def test_crashed_slurmctld_loses_no_job(controller, saved):
    controller.output("systemctl kill --signal=KILL slurmctld")
    wait(lambda: controller.run("systemctl is-active --quiet slurmctld || systemctl start slurmctld").rc == 0)
    wait(lambda: controller.run("scontrol ping | grep -q UP").rc == 0)
    assert_all_complete(controller, saved)
