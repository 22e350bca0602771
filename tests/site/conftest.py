"""What an admin does and what befalls a site, on the running test bed; the order matters.

Each module leaves the site as it found it. First what changes nothing, then what grows and restarts it, last
what removes secrets, and the scenario that does not need it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.clusters import jobs
from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, other_user, two_computes, user
from tests.support.clusters.openstack_site import in_box

__all__ = ["cluster", "computes", "controller", "login", "nodes", "other_user", "two_computes", "user"]
ORDER = (
    "test_repeat",
    "test_refusals",
    "test_openstack",
    "test_openstack_refusals",
    "test_cut",
    "test_nodes",
    "test_join",
    "test_reconfigure",
    "test_health",
    "test_daemons",
    "test_programs",
    "test_network_faults",
    "test_backup",
    "test_death",
    "test_stop",
    "test_secrets",
    "test_molecule",
)


def pytest_collection_modifyitems(items):
    """Put the modules of this folder in order; an unlisted one is an error."""
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    others = [item for item in items if item not in here]
    items[:] = others + sorted(here, key=lambda item: ORDER.index(item.path.stem))


@pytest.fixture(scope="session")
def podman(controller):
    """Run podman on the containers of these nodes."""
    cluster_name = controller.variables["name"]

    def run(*arguments, nodes):
        containers = [f"{cluster_name}-{node.name}" for node in nodes]
        subprocess.run(["podman", *arguments, *containers], check=True, capture_output=True, text=True)

    return run


@pytest.fixture(scope="module")
def openstack(tmp_path_factory, request):
    """A site of the module's own, and its project."""
    name = request.module.__name__.rpartition(".test_")[2]
    with in_box(tmp_path_factory.mktemp(name), name) as (site, project):
        yield site, project


@pytest.fixture(scope="module")
def site(openstack):
    return openstack[0]


@pytest.fixture(scope="module")
def project(openstack):
    return openstack[1]


@pytest.fixture
def whole(controller, computes):
    """Wait, before and after a test, until every node takes jobs."""
    names = [node.name for node in computes]
    jobs.wait_for_nodes(controller, *names)
    yield names
    jobs.wait_for_nodes(controller, *names, timeout_s=240)
