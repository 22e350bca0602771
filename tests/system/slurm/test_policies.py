"""What a site chooses for all jobs: limits that do not follow the shell, priorities."""

import re


def test_job_may_lock_what_its_node_may(login, user, managed):
    """RDMA locks memory; the limit of the shell that sent a job says nothing of the node's."""
    limit = login.run_as(user, "ulimit -l 64; srun --mem=20 bash -c 'ulimit -l'")
    assert limit == "unlimited" or int(limit) > 64


def test_other_limits_follow_the_shell(login, user, managed):
    assert login.run_as(user, "ulimit -c 0; ulimit -n 500; srun --mem=20 bash -c 'ulimit -n'") == "500"


def test_who_used_less_comes_earlier(settings, controller, managed):
    assert settings["PriorityType"] == "priority/multifactor"
    assert int(settings["PriorityWeightFairShare"]) > 0
    assert re.search(r"FAIRSHARE", controller.output("sprio --weights"))
