"""EP on live nodes, of the host's compiler: its sums are published, so any cluster must find them."""

import json

import pytest

from tests.support.clusters.cluster import ROOT

PROGRAMS = ROOT / "src/isthmus/bench/programs"
FOLDER = ".isthmus-bench-test"


@pytest.fixture(scope="module")
def ep(login, user):
    """The program in the user's home, as a path there."""
    login.run_as(user, f"mkdir -p {FOLDER}")
    for name in ("ep.c", "program.c", "program.h"):
        login.run_as(user, f"cat > {FOLDER}/{name} <<'END'\n{(PROGRAMS / name).read_text()}END")
    words = "-std=gnu11 -O2 -Wall -Wextra -Werror"
    login.run_as(user, f"cd {FOLDER} && mpicc.openmpi {words} -o ep ep.c program.c -lm && ln -sf ep ep.S.4")
    yield f"./{FOLDER}/ep"
    login.run_as(user, f"rm -r {FOLDER}")


@pytest.fixture(scope="module")
def width(two_computes):
    """Options for four ranks on two nodes."""
    return f"--nodes={len(two_computes)} --ntasks-per-node=2 --mem-per-cpu=100 --time=5 --mpi=pmix"


@pytest.mark.parametrize("letter", ["S", "W"])
def test_four_ranks_on_two_nodes_find_the_published_sums(login, user, ep, width, letter):
    reported = json.loads(login.run_as(user, f"srun {width} {ep} {letter}"))
    assert (reported["class"], reported["ranks"], reported["verified"]) == (letter, 4, True)


def test_name_says_class_and_width(login, user, ep, width):
    assert json.loads(login.run_as(user, f"srun {width} {ep}.S.4"))["verified"]
    refused = login.try_as(user, f"srun --ntasks=2 --mem-per-cpu=100 --time=5 --mpi=pmix {ep}.S.4")
    assert refused.rc == 2
    assert "ep.S.4 is for 4 ranks, and there are 2" in refused.stderr


def test_wrong_class_ends_with_a_reason(login, user, ep, width):
    refused = login.try_as(user, f"srun {width} {ep} Q")
    assert refused.rc == 2
    assert "say S, W, A, B or C: ep W" in refused.stderr
