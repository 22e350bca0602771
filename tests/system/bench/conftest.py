"""Tests of what only a site has that measures: its group bench is filled."""

import json

import pytest

from tests.support.user_clusters import fresh


@pytest.fixture(scope="session")
def bench_images(login):
    """Name -> reference of the layer's images."""
    told = login.run("cat /etc/isthmus/bench.json")
    if told.rc:
        pytest.skip("the site has no layer bench")
    return json.loads(told.stdout)["images"]


@pytest.fixture(scope="session")
def measuring(bench_images, login, user):
    """The user's cluster, with MPIJobs."""
    with fresh(login, user) as found:
        found.isthmus("workloads add mpi")
        yield found
