"""Pods with GPUs, where a node of Slurm has any."""

import re

import pytest

from tests.support.wait import wait

GPUS = re.compile(r"(?:^|,)gpu(?::[^:(,]+)?:(\d+)")


@pytest.fixture(scope="module")
def offered(controller):
    """How many GPUs the nodes of Slurm have."""
    lines = controller.output("sinfo --noheader --Node --Format=NodeList:100,Gres:200").splitlines()
    by_node = {line.split()[0]: line.split()[-1] for line in lines}
    count = sum(int(found) for gres in by_node.values() for found in GPUS.findall(gres))
    if not count:
        pytest.skip("no node has Gres gpu; see slurm_node in docs/admins/slurm.md")
    return count


def test_node_shows_what_slurm_has(offered, mine):
    reported = mine.kubectl("get node slurm --output jsonpath='{.status.capacity}'")
    assert f'"nvidia.com/gpu":"{offered}"' in reported


def test_pod_with_a_gpu_is_a_job_with_one(offered, space, controller):
    space.ready("pod/one")
    asked = f"squeue --noheader --user={space.cluster.user} --name=one --Format=tres-per-node:200"
    assert re.fullmatch(r"gres[/:]gpu:1", controller.output(asked).strip())


def test_pod_with_too_many_says_so(offered, space):
    reported = wait(
        lambda: space.status("greedy"), lambda reported: reported.get("reason") == "FailedSubmit", timeout_s=60
    )
    assert (reported["phase"], "Requested node configuration is not available" in reported["message"]) == (
        "Pending",
        True,
    )
