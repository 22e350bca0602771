import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait


@pytest.fixture
def gate(login, user):
    """A file that is not there yet; the first job of the queue runs until it is."""
    name = login.run_as(user, "mktemp --dry-run .isthmus-test-XXXXXXXX")
    yield name
    login.run_as(user, f"rm -f {name}")


@pytest.fixture
def queue(gate, login, controller, user, computes, whole):
    """Jobs in the queue: one runs, the other wants the same whole node."""
    commands = (f"until test -e {gate}; do sleep 0.2; done", "true")
    options = f"--nodelist={computes[0].name} --exclusive --mem=100"
    submitted = [jobs.submit(login, user, options, command) for command in commands]
    jobs.wait_for_job(controller, submitted[0], "RUNNING")
    yield submitted
    jobs.cancel(controller, *submitted)


@pytest.fixture
def assert_all_complete(gate, queue, login, controller, user):
    """Let the first job end, and see that each job of the queue ran once and to its end."""

    def look():
        jobs.wait_for_job(controller, queue[0], "RUNNING")
        login.run_as(user, f"touch {gate}")
        for job in queue:
            jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=240)
            options = "--noheader --allocations --duplicates --parsable2 --format=JobID"
            assert controller.output(f"sacct {options} --jobs={job}").split() == [job]

    return look


@pytest.mark.parametrize("daemon", ["munge", "slurmctld", "slurmdbd", "mariadb"])
def test_queue_survives_a_restart_on_the_controller(daemon, controller, assert_all_complete):
    controller.output(f"systemctl restart {daemon}")
    wait(lambda: controller.run("scontrol ping && sacctmgr --noheader show cluster").rc == 0)
    assert_all_complete()


@pytest.mark.parametrize("daemon", ["munge", "slurmd"])
def test_running_job_survives_a_restart_on_its_node(daemon, computes, assert_all_complete):
    computes[0].output(f"systemctl restart {daemon}")
    assert_all_complete()


# The first job outlives the crash: an end that slurmctld learnt of but had not written down is lost with it.
def test_crashed_slurmctld_loses_no_job(controller, queue, assert_all_complete):
    jobs.wait_until_saved(controller, queue[-1])
    controller.output("systemctl kill --signal=KILL slurmctld")
    wait(lambda: controller.run("systemctl is-active --quiet slurmctld || systemctl start slurmctld").rc == 0)
    wait(lambda: controller.run("scontrol ping | grep -q UP").rc == 0)
    assert_all_complete()
