"""MPI in pods: by srun, and by mpirun within a batch script and salloc; Open MPI and MPICH."""

from contextlib import contextmanager

import pytest

from tests.support.clusters import jobs
from tests.system.slurm.test_mpi import KINDS, PROGRAM

JOB = "--pod-network --nodes=2 --ntasks-per-node=2 --mem-per-cpu=256"
MET = ["size=4 sum=6"] * 4


@pytest.fixture(scope="module")
def programs(login, user):
    """MPI -> a program built with it, in a folder that all nodes see."""
    folder = login.run_as(user, "mktemp -d -p ~ mpi.XXXXXX")
    login.run_as(user, f"cat > {folder}/sum.c <<'END'\n{PROGRAM}\nEND")
    for kind in KINDS:
        login.run_as(user, f"mpicc.{kind} -o {folder}/{kind} {folder}/sum.c")
    yield {kind: f"{folder}/{kind}" for kind in KINDS}
    login.run_as(user, f"rm -rf {folder}")


def results(output):
    """Return what ranks say, without their host."""
    return [line.split(maxsplit=1)[1] for line in output.splitlines() if "size=" in line]


@pytest.fixture(params=["private", "flannel", "cni"])
def options(request, controller):
    """Options of a job, for each network of the site."""
    if request.param not in controller.variables["network_drivers"]:
        pytest.skip(f"jobs of this site cannot have the network {request.param}: network_drivers")
    return JOB.replace("--pod-network", f"--pod-network={request.param}")


@contextmanager
def pods(login, user):
    """An allocation that has pods on both nodes."""
    reported = login.run_as(user, f"salloc --no-shell {JOB} 2>&1")
    job = next(word for word in reported.split() if word.isdigit())
    try:
        yield
    finally:
        login.run_as(user, f"scancel {job}")


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_of_two_nodes_meet_in_pods(login, user, two_computes, programs, options, kind):
    reported = login.run_as(user, f"srun --mpi={KINDS[kind]} {options} {programs[kind]}")
    assert results(reported) == MET


def test_two_jobs_of_a_user_on_the_same_nodes_do_not_mix(login, controller, user, two_computes, programs):
    started = [jobs.submit(login, user, JOB, f"srun --mpi=pmix {programs['openmpi']}") for _ in range(2)]
    for job in started:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=120)
        assert results(jobs.output(login, user, job)) == MET


def test_mpirun_works_in_a_batch_script(login, controller, user, two_computes, programs, options):
    job = jobs.submit(login, user, options, f"mpirun.openmpi {programs['openmpi']}")
    jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=120)
    assert results(jobs.output(login, user, job)) == MET


def test_mpirun_works_in_an_interactive_shell(login, user, two_computes, programs, options):
    reported = login.run_as(user, f"echo 'mpirun.openmpi {programs['openmpi']}' | salloc {options}")
    assert results(reported) == MET


def test_ranks_in_containers_meet_in_pods(login, user, two_computes, programs):
    image = login.run_as(user, "isthmus pull ctl:5000/isthmus/mpi")
    inside = f"apptainer exec --bind {programs['openmpi']} {image} {programs['openmpi']}"
    assert results(login.run_as(user, f"srun --mpi=pmix {JOB} {inside}")) == MET


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("owner", ["user", "other"])
def test_ranks_on_the_hosts_network_meet_beside_pods(login, user, other_user, two_computes, programs, kind, owner):
    """The legs of a user with pods on both nodes are additional interfaces, which no other host's process reaches."""
    host = f"srun --mpi={KINDS[kind]} {JOB} --pod-network=none --time=1 {programs[kind]}"
    with pods(login, user if owner == "user" else other_user):
        assert results(login.run_as(user, host)) == MET


def test_ranks_in_containers_on_the_hosts_network_meet_beside_pods(login, user, two_computes, programs):
    image = login.run_as(user, "isthmus pull ctl:5000/isthmus/mpi")
    inside = f"apptainer exec --bind {programs['openmpi']} {image} {programs['openmpi']}"
    with pods(login, user):
        assert results(login.run_as(user, f"srun --mpi=pmix {JOB} --pod-network=none --time=1 {inside}")) == MET
