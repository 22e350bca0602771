"""The three ways of containers in Kubernetes, as docs/users/examples/ways has them: a pod and an MPIJob each."""

import json
import re

import pytest
import yaml

from tests.support.clusters.cluster import ROOT

pytestmark = pytest.mark.full
WAYS = ROOT / "docs/users/examples/ways"
RING = ROOT / "roles/main_job/files/ring.c"
HOST = re.compile(r"Rank \d+ on host (\S+)")


@pytest.fixture(scope="module")
def home(login, user):
    """The user's, with the program of the hybrid way."""
    home = login.run_as(user, "echo $HOME").strip()
    login.run_as(user, f"mkdir -p ways && mpicc.openmpi -x c -O2 -o ways/ring - <<'END'\n{RING.read_text()}END")
    yield home
    login.run_as(user, "rm -r ways")


@pytest.fixture(scope="module")
def objects(jobs, home, bench_registry):
    """Kind and way -> an object that was made."""
    made = {}
    for path in sorted(WAYS.glob("*.yaml")):
        text = path.read_text().replace("ctl:5000", bench_registry).replace("$HOME", home)
        for item in yaml.safe_load_all(text):
            made[item["kind"], path.stem] = item
            jobs.space.kubectl("apply -f -", json.dumps(item))
    return made


@pytest.fixture(scope="module")
def bench_registry(workload):
    """The site's registry."""
    return workload["images"]["mpi-operator-mpich"].partition("/")[0]


def nodes(printed):
    """On how many nodes ranks ran, by what either program wrote."""
    reported = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return reported[0]["nodes"] if reported else len(set(HOST.findall(printed)))


@pytest.mark.parametrize("way", ["basic", "optimized", "hybrid"])
def test_ranks_of_an_mpijob_meet_over_two_workers(jobs, objects, two_computes, way):
    name = objects["MPIJob", way]["metadata"]["name"]
    jobs.ended(name, timeout_s=300)
    assert nodes(jobs.log(name)) == 2


@pytest.mark.parametrize("way", ["basic", "optimized", "hybrid"])
def test_ranks_of_a_pod_meet_over_two_nodes(jobs, objects, two_computes, way):
    name = objects["Pod", way]["metadata"]["name"]
    status = jobs.space.ended(name)
    printed = jobs.space.kubectl(f"logs {name}")
    assert status["phase"] == "Succeeded", printed
    assert nodes(printed) == 2
