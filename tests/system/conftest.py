"""Tests of a deployed cluster, whichever inventory it came from; molecule's verifier runs them too.

Clusters of two users stand side by side, each up when a test asks for it; left as they were found: none.
"""

import json
from pathlib import Path

import pytest

from tests.support.clusters.doc_pages import Reader
from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, other_user, two_computes, user
from tests.support.clusters.user_clusters import fresh, site_images

__all__ = ["cluster", "computes", "controller", "login", "nodes", "other_user", "two_computes", "user"]

HERE = Path(__file__).parent
WITH_CLUSTERS = tuple(HERE / name for name in ("kubernetes", "workloads", "bench", "parallelcluster"))
CLUSTERS = {"mine", "theirs"}
# Concurrent test processes should end together: these modules take longest.
LONG = ("test_deaths", "test_data_on_node", "test_mpi_steps", "test_workloads", "test_up", "test_mpijobs")


def pytest_collection_modifyitems(items):
    """Tests with clusters come last: others want users without jobs, and these are up until the end."""

    def place(item):
        has_cluster = item.path.parent in WITH_CLUSTERS or CLUSTERS.intersection(item.fixturenames)
        return 0 if not has_cluster else 1 if item.path.stem in LONG else 2

    items.sort(key=place)


@pytest.fixture(scope="session")
def settings(login):
    """What the site's admin decided about users' clusters."""
    return json.loads(login.output("cat /etc/isthmus/kubernetes.json"))


@pytest.fixture(scope="session")
def mine(login, user):
    """The first user's cluster."""
    with fresh(login, user) as found:
        yield found


@pytest.fixture(scope="session")
def theirs(login, other_user):
    """The other's."""
    with fresh(login, other_user) as found:
        yield found


@pytest.fixture(scope="session")
def images(controller):
    """Short name -> an image of the site's registry."""
    return site_images(controller)


@pytest.fixture(scope="session")
def reader(cluster, controller, user, other_user, two_computes):
    """Who types the docs' pages, which show a site with private networks whose Services have addresses."""
    kubernetes = controller.run("cat /etc/isthmus/kubernetes.json")
    found = {} if kubernetes.rc else json.loads(kubernetes.stdout)
    if found.get("driver") != "private" or found["headless"]:
        pytest.skip("pages show a site whose Services have addresses")
    registry = site_images(controller)["busybox"].partition("/isthmus/")[0]
    first, second = (node.name for node in two_computes)
    names = {"ctl:5000": registry, "alice": user, "bob": other_user, "c1": first, "c2": second}
    return Reader(cluster, user, names)
