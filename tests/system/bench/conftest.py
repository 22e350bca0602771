"""Tests of what only a site has that measures: its group bench is filled."""

import json

import pytest


@pytest.fixture(scope="session")
def bench_images(login):
    """Name -> reference of the layer's images."""
    reported = login.run("cat /etc/isthmus/bench.json")
    if reported.rc:
        pytest.skip("the site has no layer bench")
    return json.loads(reported.stdout)["images"]


@pytest.fixture(scope="session")
def measuring(bench_images, mine):
    """The user's cluster, with MPIJobs."""
    mine.isthmus("workloads add mpi")
    return mine
