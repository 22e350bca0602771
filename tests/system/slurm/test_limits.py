import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait

QOS = "isthmus-test"


@pytest.fixture(scope="module")
def small_qos(login, controller, user):
    """A QOS that lets each user have two CPUs."""
    controller.output(f"sacctmgr --immediate add qos {QOS} set MaxTRESPerUser=cpu=2")
    controller.output(f"sacctmgr --immediate modify user {user} set qos+={QOS}")
    # slurmctld hears of it from slurmdbd.
    wait(lambda: login.try_as(user, f"sbatch --test-only --qos={QOS} --mem=10 --wrap true").rc == 0)
    yield QOS
    controller.output(f"sacctmgr --immediate modify user {user} set qos-={QOS}")
    controller.output(f"sacctmgr --immediate delete qos {QOS}")


def test_job_over_its_qos_limit_is_held(login, controller, user, small_qos):
    with jobs.running(login, controller, user, f"--qos={small_qos} --ntasks=2 --mem-per-cpu=10"):
        held = jobs.submit(login, user, f"--qos={small_qos} --mem-per-cpu=10", "true")
        wait(
            lambda: jobs.pending_reason(controller, held),
            lambda reason: reason == "QOSMaxCpuPerUserLimit",
        )
        assert jobs.state(controller, held) == "PENDING"
    jobs.wait_for_job(controller, held, "COMPLETED")


def test_qos_of_another_is_refused(login, other_user, small_qos):
    refused = login.try_as(other_user, f"sbatch --qos={small_qos} --wrap true")
    assert refused.rc != 0
    assert "Invalid qos specification" in refused.stderr


def test_stranger_without_an_account_may_not_submit(login, controller):
    refused = login.run("su - nobody -s /bin/bash -c 'sbatch --output=/dev/null --wrap true'")
    assert refused.rc != 0
    assert "Invalid account" in refused.stderr


def test_user_may_not_change_limits(login, user):
    assert login.try_as(user, f"sacctmgr --immediate modify user {user} set MaxJobs=1000").rc != 0
    assert login.try_as(user, "scontrol update NodeName=ALL State=DRAIN Reason=test").rc != 0


def test_every_user_has_an_account(controller, cluster, managed):
    shown = controller.output("sacctmgr --noheader --parsable2 show associations format=user")
    assert set(cluster.users) <= set(shown.split())
