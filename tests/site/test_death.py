from tests.support import jobs
from tests.support.waiting import wait

# SlurmdTimeout of the test bed, a round of pings, and a wide margin.
NOTICED_S = 240


def test_death_of_a_node_ends_its_job_and_it_comes_back(controller, login, user, computes, whole, podman):
    node = computes[-1]
    job = jobs.submit(login, user, f"--no-requeue --nodelist={node.name} --mem=10", "sleep 600")
    jobs.wait_for_job(controller, job, "RUNNING")
    podman("kill", nodes=[node])
    try:
        assert jobs.wait_for_job(controller, job, "NODE_FAIL", timeout_s=NOTICED_S) == "NODE_FAIL"
        assert jobs.node_states(controller)[node.name].rstrip("*") == "down"
    finally:
        podman("start", nodes=[node])
    jobs.wait_for_nodes(controller, node.name)
    assert login.run_as(user, f"srun --nodelist={node.name} hostname") == node.name


def test_restarted_node_takes_its_queue(controller, login, user, computes, whole, podman):
    node = computes[-1]
    queued = [jobs.submit(login, user, f"--nodelist={node.name} --exclusive --mem=10", "sleep 3") for _ in range(3)]
    jobs.wait_for_job(controller, queued[0], "RUNNING", "COMPLETED")
    podman("restart", "--time", "10", nodes=[node])
    wait(node.answers, timeout_s=NOTICED_S)
    jobs.wait_for_daemons([node])
    jobs.wait_for_nodes(controller, node.name)
    for job in queued[1:]:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=NOTICED_S)
    wait(lambda: controller.output(f"squeue --noheader --nodelist={node.name}") == "", timeout_s=NOTICED_S)
