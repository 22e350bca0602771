"""An MPIJob for a Kubernetes that adds nothing to it."""

import pytest

from isthmus.bench import scripts, tables
from isthmus.bench.launches import Column
from isthmus.bench.plain import job
from isthmus.bench.scripts import Site
from isthmus.bench.sizes import SIZES, Table

SITE = Site("", "ctl:5000/workloads/bench-openmpi:1", "", {"OMPI_MCA_a": "1"}, node_cpus=2, has_network=True)
LAUNCHES = {
    each.row: each for each in tables.launches(Table.TABLE3, SIZES["smoke"], plain=True) if each.column is Column.PLAIN
}


def parts(made):
    return [made["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"] for kind in ("Launcher", "Worker")]


@pytest.mark.parametrize("row", LAUNCHES)
def test_program_image_and_memory_are_those_of_the_mpijob_here(row):
    (launcher, worker), (ours, our_worker) = (
        parts(make(LAUNCHES[row], SITE, "b1")) for make in (job.mpijob, scripts.mpijob)
    )
    (container,), (our_container,) = worker["containers"], our_worker["containers"]
    for key in ("image", "command", "env", "securityContext"):
        assert container[key] == our_container[key]
    for key in ("image", "command"):
        assert launcher["containers"][0][key] == ours["containers"][0][key]
    requests = container["resources"]["requests"]
    assert requests["memory"] == our_container["resources"]["requests"]["memory"]
    assert container["resources"] == {"requests": {**requests, "cpu": "1"}, "limits": {"memory": requests["memory"]}}


def test_launcher_knows_its_hosts_without_a_policy():
    (launcher, worker) = parts(job.mpijob(LAUNCHES["1/4"], SITE, "b1"))
    variables = {each["name"]: each["value"] for each in launcher["containers"][0]["env"]}
    assert variables["PRTE_MCA_prte_default_hostfile"] == "/etc/mpi/hostfile"
    assert variables["OMPI_MCA_a"] == "1"
    assert not [each for each in worker["containers"][0]["env"] if "PRTE" in each["name"]]


def test_each_worker_has_a_node_of_its_own():
    (_, worker) = parts(job.mpijob(LAUNCHES["1/4"], SITE, "b7"))
    (term,) = worker["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    labels = {"training.kubeflow.org/job-name": "b7", "training.kubeflow.org/job-role": "worker"}
    assert term["labelSelector"] == {"matchLabels": labels}
