import pytest

from tests.support.clusters import jobs

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%s size=%d sum=%d\n", host, size, sum);
    return MPI_Finalize();
}
"""
# The MPI and how Slurm starts it.
KINDS = {"openmpi": "pmix", "mpich": "pmi2"}


@pytest.fixture(scope="module", params=KINDS)
def program(request, login, user, managed):
    """A program built with one of the MPIs by an ordinary user, in a folder that all nodes see."""
    folder = login.run_as(user, "mktemp -d -p ~ mpi.XXXXXX")
    login.run_as(user, f"cat > {folder}/sum.c <<'END'\n{PROGRAM}\nEND")
    login.run_as(user, f"mpicc.{request.param} -o {folder}/sum {folder}/sum.c")
    yield f"{folder}/sum", KINDS[request.param]
    login.run_as(user, f"rm -rf {folder}")


def start(login, user, program, options):
    path, mpi = program
    return login.run_as(user, f"srun --mpi={mpi} --mem-per-cpu=256 {options} {path}").splitlines()


def test_ranks_of_one_node_meet(login, user, program):
    lines = start(login, user, program, "--nodes=1 --ntasks=2")
    assert [line.split(maxsplit=1)[1] for line in lines] == ["size=2 sum=1"] * 2


def test_ranks_of_two_nodes_meet(login, user, two_computes, program):
    lines = start(login, user, program, "--nodes=2 --ntasks-per-node=2")
    assert [line.split(maxsplit=1)[1] for line in lines] == ["size=4 sum=6"] * 4
    assert len({line.split()[0] for line in lines}) == 2


def test_mpicc_is_the_sites(login, user, managed):
    wanted = login.variables["slurm_mpi_compilers"]
    assert wanted in login.run_as(user, "readlink -f $(command -v mpicc)").replace("opal_wrapper", "openmpi")


def test_default_mpi_starts_ranks(login, user, managed):
    kinds = login.run_as(user, "srun --mpi=list 2>&1")
    assert {"pmix", "pmi2"} <= set(kinds.split())


def test_plain_srun_uses_the_default(login, controller, user, computes):
    default = jobs.settings(controller)["MpiDefault"]
    variable = {"pmix": "PMIX_RANK", "pmi2": "PMI_RANK"}[default]
    assert login.run_as(user, f"srun --ntasks=2 --mem-per-cpu=50 printenv {variable} | sort").split() == ["0", "1"]
