"""Which MPIJobs are left to run, and what each asks for."""

from argparse import Namespace
from collections import Counter

from tests.bench.mpijobs import Cluster, plan

WIDTHS = Namespace(small=4, at_once=3, wide=2, workers=8, mpis="")


def example(mpi):
    def replica(kind):
        return {"template": {"spec": {"containers": [{"name": kind}]}}}

    replicas = {kind: replica(kind) for kind in ("Launcher", "Worker")}
    return {"metadata": {"name": f"pi-{mpi}"}, "spec": {"runPolicy": {}, "mpiReplicaSpecs": replicas}}


CLUSTER = Cluster(None, {mpi: example(mpi) for mpi in ("openmpi", "mpich")})


def names(done):
    return [[job["metadata"]["name"] for job in jobs] for jobs, _, _ in plan(CLUSTER, WIDTHS, Counter(done))]


def test_small_ones_of_each_mpi_come_in_batches_and_wide_ones_alone():
    small = [[f"{mpi}-0", f"{mpi}-1", f"{mpi}-2"] for mpi in CLUSTER.examples]
    last = [[f"{mpi}-3"] for mpi in CLUSTER.examples]
    assert names({}) == [small[0], last[0], small[1], last[1], ["wide-0"], ["wide-1"]]


def test_what_is_done_is_not_run_again():
    done = {("openmpi", 2): 4, ("mpich", 2): 3, ("openmpi", 8): 1}
    assert names(done) == [["mpich-3"], ["wide-1"]]


def test_job_has_a_rank_for_each_worker():
    *_, (jobs, mpi, workers) = plan(CLUSTER, WIDTHS, Counter())
    replicas = jobs[0]["spec"]["mpiReplicaSpecs"]
    (launcher,) = replicas["Launcher"]["template"]["spec"]["containers"]
    assert (mpi, workers, replicas["Worker"]["replicas"], launcher["command"][1:3]) == ("openmpi", 8, 8, ["-n", "8"])
