import pytest

from tests.support.clusters import jobs, playbooks
from tests.support.wait import wait

# SlurmdTimeout of the test bed, a round of pings, and a wide margin.
NOTICED_S = 240


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


@pytest.fixture(scope="module")
def dead(controller, login, user, computes, podman):
    """A compute node that has died, and the job that died with it; in the end the node is back."""
    node = computes[-1]
    jobs.wait_for_nodes(controller, node.name)
    job = jobs.submit(login, user, f"--no-requeue --nodelist={node.name} --mem=10", "sleep 600")
    jobs.wait_for_job(controller, job, "RUNNING")
    podman("kill", nodes=[node])
    yield node, job
    podman("start", nodes=[node])
    jobs.wait_for_nodes(controller, node.name, timeout_s=240)


def serials(*places):
    return [node.output(f"openssl x509 -noout -serial -in /etc/isthmus/tls/{name}.crt") for node, name in places]


def test_certificates_are_renewed_beside_a_dead_node(controller, computes, dead):
    """Before slurmctld has noticed."""
    node, _ = dead
    places = [(controller, name) for name in ("registry", "etcd", "networkd")]
    places += [(each, "networkd") for each in computes[:-1]]
    before = serials(*places)
    renewed = playbooks.play("renew_beside_dead", "playbooks/renew_certificates.yml", "-e", "ca_renew_force=true")
    assert not set(before) & set(serials(*places))
    recap = renewed.recap
    assert recap.pop(node.name)["unreachable"] == 1
    assert {(counts["unreachable"], counts["failed"]) for counts in recap.values()} == {(0, 0)}
    assert renewed.rc != 0
    assert node.name in renewed.output[-600:]  # the last that is said


def test_death_of_a_node_ends_its_job(controller, dead):
    node, job = dead
    assert jobs.wait_for_job(controller, job, "NODE_FAIL", timeout_s=NOTICED_S) == "NODE_FAIL"
    assert jobs.node_states(controller)[node.name].rstrip("*") == "down"


def test_node_that_died_comes_back(controller, login, user, dead, podman):
    node, _ = dead
    podman("start", nodes=[node])
    jobs.wait_for_nodes(controller, node.name, timeout_s=240)
    assert login.run_as(user, f"srun --nodelist={node.name} hostname") == node.name
