"""A container whose program runs over two nodes: its pod's annotations ask for tasks, srun starts its ranks."""

import json
import re

import pytest

from tests.support.clusters.cluster import ROOT
from tests.support.wait import wait

FOLDER = ".isthmus-mpi-steps"
SOURCE = ROOT / "roles/main_job/files/ring.c"
RANK = re.compile(r"here is rank (\d+) on (\S+) as (\d+)")


@pytest.fixture(scope="module")
def program(login, user, two_computes):
    """The MPI program, in the user's home."""
    login.run_as(
        user, f"mkdir -p {FOLDER} && mpicc.openmpi -x c -O2 -o {FOLDER}/ring - <<'END'\n{SOURCE.read_text()}END"
    )
    yield
    login.run_as(user, f"rm -r {FOLDER}")


@pytest.fixture(scope="module")
def pods(program, space):
    """The namespace, with pods that find their program."""
    return space


@pytest.fixture(scope="module")
def ring(pods):
    """What the first pod wrote when it had ended well."""
    status = pods.ended("ring")
    printed = pods.kubectl("logs ring")
    assert status["phase"] == "Succeeded", printed
    return printed


def test_ranks_meet_over_two_nodes(ring):
    reported = json.loads(next(line for line in ring.splitlines() if line.startswith("{")))
    assert (reported["ranks"], reported["nodes"], reported["ring"], reported["between_nodes"]) == (2, 2, "right", True)


def test_each_rank_is_the_user_on_a_node_of_its_own(ring, login, user, two_computes):
    ranks = RANK.findall(ring)
    assert sorted(rank for rank, _, _ in ranks) == ["0", "1"]
    assert {node for _, node, _ in ranks} == {node.output("uname -n") for node in two_computes}
    assert {uid for _, _, uid in ranks} == {login.output(f"id -u {user}")}


def test_rank_that_fails_fails_the_pod(pods):
    status = pods.ended("failing")
    assert status["phase"] == "Failed"
    assert pods.container("failing", "failing")["state"]["terminated"]["exitCode"] == 3


def test_deleted_pod_leaves_no_rank(pods, two_computes):
    def ranks():
        return [node.name for node in two_computes if node.run("pgrep --full '^[^ ]*sleep 31415'").rc == 0]

    wait(ranks, lambda found: len(found) == 2, timeout_s=180)
    assert pods.kubectl("exec endless -- echo here") == "here"
    pods.kubectl("delete pod endless --timeout=120s")
    wait(ranks, lambda found: not found)


@pytest.fixture(scope="module")
def step(pods):
    """What the container beside the program of a step saw of it."""
    pods.ended("step")
    return pods.kubectl("logs step --container wait").splitlines()


def test_step_runs_over_two_nodes(step):
    reported = json.loads(next(line for line in step if line.startswith("{")))
    assert (reported["ranks"], reported["nodes"], reported["ring"]) == (2, 2, "right")


def test_exit_code_of_a_step_is_that_of_its_ranks(step, pods):
    assert step[0] == "4"
    assert pods.container("step", "main")["state"]["terminated"]["exitCode"] == 4
    assert pods.container("step", "wait")["state"]["terminated"]["exitCode"] == 0


def test_volume_of_the_pod_is_on_its_first_node(step, pods):
    assert step.count("/var/run/argo/argoexec") == 1
    assert "volume argo of container main is on the job's first node alone" in str(pods.events("step"))
