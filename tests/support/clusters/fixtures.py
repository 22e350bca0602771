"""The parts of a live cluster as pytest fixtures; the conftest of each kind of live test takes them over."""

from __future__ import annotations

import pytest

from tests.support.clusters import cluster as clusters
from tests.support.clusters import workers
from tests.support.clusters.cluster import Cluster, Node


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster of ISTHMUS_INVENTORY (by default the local test bed) and NAME."""
    return clusters.load(clusters.inventory_sources())


@pytest.fixture(scope="session")
def controller(cluster: Cluster) -> Node:
    """The head node."""
    return cluster.controller


@pytest.fixture(scope="session")
def login(cluster: Cluster) -> Node:
    """Where users submit; the controller when there is no login node."""
    return cluster.submit


@pytest.fixture(scope="session")
def computes(cluster: Cluster) -> list[Node]:
    """Where jobs run, at least one."""
    return cluster.computes


@pytest.fixture(scope="session")
def nodes(cluster: Cluster) -> dict[str, Node]:
    """Every node by name."""
    return cluster.nodes


@pytest.fixture(scope="session")
def two_computes(computes: list[Node]) -> list[Node]:
    """Two compute nodes; skips on a smaller site."""
    if len(computes) < 2:
        pytest.skip("the site has one compute node")
    return computes[:2]


@pytest.fixture(scope="session")
def user(cluster: Cluster) -> str:
    """An ordinary user."""
    return workers.own_users(cluster.users)[0]


@pytest.fixture(scope="session")
def other_user(cluster: Cluster) -> str:
    """Another ordinary user."""
    found = workers.own_users(cluster.users)
    if len(found) < 2:
        pytest.skip("the site has one user")
    return found[1]
