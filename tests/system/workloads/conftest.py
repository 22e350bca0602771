"""The MPI Operator in the first user's cluster, added when a test asks for it."""

import pytest

from tests.support.clusters import mpi_jobs
from tests.support.clusters.user_clusters import namespace


@pytest.fixture(scope="session", autouse=True)
def layer(login):
    """Skip where the site has no layer workloads."""
    if login.run("test -e /etc/isthmus/workloads.json").rc:
        pytest.skip("the site has no layer workloads")


@pytest.fixture(scope="session")
def workload(mine):
    """The workload, as the user sees it once it is added."""
    (found,) = mine.isthmus("workloads add mpi")["workloads"]
    yield found
    mine.isthmus("workloads remove mpi --force")


@pytest.fixture(scope="module")
def jobs(mine, workload, images, login, request):
    """A namespace for MPIJobs."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    with namespace(mine, name, images) as space:
        read = lambda path: login.run_as(mine.user, f"cat {path}")  # noqa: E731 -- one use
        yield mpi_jobs.MpiJobs(space, mpi_jobs.examples(workload, read), workload["images"])


@pytest.fixture(scope="module", params=["openmpi", "mpich", "intel"])
def mpi(request, jobs):
    """Each MPI that the site has."""
    if request.param not in jobs.examples:
        pytest.skip(f"the site does not offer {request.param}")
    return request.param
