"""What is submitted for a launch."""

import subprocess
from dataclasses import replace

from isthmus.bench import plan, scripts, tables
from isthmus.bench.launches import Column
from isthmus.bench.running import name
from isthmus.bench.scripts import Site
from isthmus.bench.sizes import SIZES, Table

SITE = Site(
    programs="/home/alice/isthmus bench/bin",
    image="ctl:5000/workloads/bench-openmpi:1",
    image_file="/home/alice/.isthmus/images/a.sqfs",
    settings={"OMPI_MCA_mpi_yield_when_idle": "1"},
    node_cpus=96,
    has_network=True,
)


def launch(table, row, column):
    found = tables.launches(table, SIZES["smoke"])
    return next(each for each in found if (each.row, each.column) == (row, column))


def test_script_runs_each_step_and_leaves_its_file_also_when_one_fails(tmp_path):
    (tmp_path / "srun").write_text("#!/bin/sh\necho srun $# $OMPI_MCA_mpi_yield_when_idle\nexit 3\n")
    (tmp_path / "srun").chmod(0o755)
    ended = tmp_path / "the end"
    text = scripts.script(launch(Table.FIGURE2, "2 nodes", Column.SLURM), SITE, str(ended))
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", text], env={"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stdout.splitlines()[1] == "srun 4 1"
    assert ended.exists()


def test_native_ranks_want_no_network_and_contained_ones_have_the_images_programs():
    native, contained = (
        launch(Table.FIGURE3, "HPL-like", column) for column in (Column.SLURM, Column.CONTAINER_NETWORK)
    )
    assert "--pod-network=none" in scripts.options(native, SITE, "out")
    assert "--pod-network=private" in scripts.options(contained, SITE, "out")
    assert scripts.command(native, SITE)[:2] == [f"{SITE.programs}/rank", f"{SITE.programs}/hpl"]
    assert scripts.command(contained, SITE)[:4] == ["apptainer", "--silent", "exec", SITE.image_file]


def test_cluster_without_pod_networks_knows_no_such_option():
    options = scripts.options(launch(Table.EP, "2", Column.SLURM), replace(SITE, has_network=False), "out")
    assert not [word for word in options if "network" in word]


def test_pod_is_of_as_many_tasks_and_memory_as_the_job():
    pod = scripts.pod(launch(Table.EP, "8", Column.POD), SITE, "b1")
    assert pod["metadata"]["annotations"]["slurm-job.hpk.io/flags"] == "--nodes=2 --ntasks-per-node=4"
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1200Mi"}
    assert container["env"] == [{"name": "OMPI_MCA_mpi_yield_when_idle", "value": "1"}]


def test_mpijob_starts_all_ranks_on_a_worker_for_each_node():
    job = scripts.mpijob(launch(Table.TABLE3, "1/4", Column.MPIJOB), SITE, "b1")["spec"]
    replicas = job["mpiReplicaSpecs"]
    (worker,), (launcher,) = (replicas[kind]["template"]["spec"]["containers"] for kind in ("Worker", "Launcher"))
    assert (replicas["Worker"]["replicas"], job["slotsPerWorker"]) == (4, 1)
    assert worker["resources"]["requests"]["cpu"] == "49"
    assert launcher["command"][:3] == ["mpirun", "-n", "4"]
    # Probes of sshd would run beside the ranks.
    assert "readinessProbe" not in worker
    assert "launcherCreationPolicy" not in job
    assert launcher["command"][-2:] == ["/opt/bench/bin/fe", "3000"]


def test_names_are_those_of_kubernetes():
    for run in plan.make(Table, SIZES["smoke"], plan.Cluster(4, 96, 24576)).runs:
        assert len(name(run)) <= 40
        assert name(run).replace("-", "").isalnum()
