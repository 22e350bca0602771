import pytest

from tests.support.clusters import jobs
from tests.support.wait import wait


@pytest.fixture
def held(controller, login, user):
    """A job that waits until it is released."""
    job = jobs.submit(login, user, "--hold --mem=10", "true")
    yield job
    controller.run(f"scancel {job}")


def test_slurm_comes_back_after_all_nodes_stopped(controller, login, user, nodes, whole, podman, held):
    everything = list(nodes.values())
    podman("stop", "--time", "15", nodes=everything)
    podman("start", nodes=everything)
    wait(lambda: all(node.answers() for node in everything), timeout_s=240)
    jobs.wait_for_daemons(everything)
    wait(lambda: controller.run("scontrol ping | grep -q UP").rc == 0, timeout_s=240)
    jobs.wait_for_nodes(controller, *whole, timeout_s=240)
    assert login.run_as(user, "srun hostname") in whole
    controller.output(f"scontrol release {held}")
    jobs.wait_for_job(controller, held, "COMPLETED")
    assert {node.output("stat -c %a /dev/fuse") for node in everything} == {"666"}
