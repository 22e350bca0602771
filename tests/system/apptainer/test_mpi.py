"""The three ways of running MPI in containers, as docs/users/examples has them, each on two nodes."""

import json

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.cluster import ROOT

SOURCE = ROOT / "roles/main_job/files/ring.c"
# Way -> the compiler of the program, and the image it runs in.
WAYS = {"basic": ("mpich", "mpi-plain"), "optimized": ("openmpi", "mpi"), "hybrid": ("openmpi", "debian")}


@pytest.fixture(scope="module", params=WAYS)
def way(request, login, user, references, work, two_computes):
    """The job of a way, in the user's folder, with its arguments: the program and the image."""
    compiler, image = WAYS[request.param]
    script, program = f"mpi-{request.param}.sh", f"ring.{compiler}"
    for name, text in ((script, (ROOT / "docs/users/examples" / script).read_text()), ("ring.c", SOURCE.read_text())):
        login.run_as(user, f"cat > {work}/{name} <<'END'\n{text}\nEND")
    login.run_as(user, f"cd {work} && mpicc.{compiler} -O2 -o {program} ring.c")
    return f"{script} ./{program} {login.run_as(user, f'isthmus pull {references[image]}')}"


@pytest.mark.parametrize("fakeroot", [0, 1], ids=["user", "fakeroot"])
def test_ranks_of_two_nodes_meet(login, controller, user, work, way, fakeroot):
    submit = f"cd {work} && FAKEROOT={fakeroot} OMPI_MCA_mpi_yield_when_idle=1 sbatch --parsable --output=mpi.out {way}"
    job = login.run_as(user, submit)
    try:
        jobs.wait_for_job(controller, job, "COMPLETED", timeout_s=120)
    finally:
        jobs.cancel(controller, job)
        printed = login.run_as(user, f"cat {work}/mpi.out")
    result = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    assert (result["ranks"], result["nodes"], result["ring"]) == (2, 2, "right"), printed
