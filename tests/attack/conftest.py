"""The standing attack suite: an ordinary user tries to get what is another's, on a live cluster.

A row is one test function: its marker says which finding it belongs to, its docstring what is tried; its parameters are
the ways tried. A way that passes was blocked, one that fails is open. `make attack` ends with one line a row
and writes results/attack.json. Several processes may attack at once, each as three users of its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.attacks import rows
from tests.support.clusters.cluster import ROOT
from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, two_computes
from tests.support.clusters.user_clusters import fresh, site_images
from tests.support.clusters.workers import own_users

__all__ = ["cluster", "computes", "controller", "login", "nodes", "two_computes"]
RESULTS = ROOT / "results/attack.json"
# One looks on, one attacks, one is attacked.
USERS = 3


@pytest.fixture(scope="session")
def roles(cluster):
    """The users of this process of tests, in the order of what they do."""
    found = own_users(cluster.users, each=USERS)
    if len(found) < USERS:
        pytest.skip("an attack needs three users: one attacks, one is attacked, one looks on")
    return found


@pytest.fixture(scope="session")
def user(roles):
    """The user who looks on."""
    return roles[0]


@pytest.fixture(scope="session")
def attacker(roles):
    """The user who attacks."""
    return roles[1]


@pytest.fixture(scope="session")
def victim(roles):
    """The user who is attacked."""
    return roles[2]


@pytest.fixture(scope="session")
def kubernetes(login):
    """Skip where the site has no layer kubernetes."""
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")


@pytest.fixture(scope="session")
def attackers_cluster(login, attacker, kubernetes):
    """The attacker's Kubernetes: up when the first test asks for it, purged at the end."""
    with fresh(login, attacker) as found:
        yield found


@pytest.fixture(scope="session")
def victims_cluster(login, victim, kubernetes):
    """The victim's Kubernetes, likewise."""
    with fresh(login, victim) as found:
        yield found


@pytest.fixture(scope="session")
def images(controller):
    """Short name -> an image of the site's registry."""
    return site_images(controller)


def pytest_configure(config):
    """Begin with no row."""
    config.pluginmanager.register(rows.Rows(RESULTS), "rows of attacks")


def pytest_collection_modifyitems(items):
    """Give the tests of this folder the row they belong to; one without a marker or a docstring is an error."""
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue
        marker = item.get_closest_marker("attack")
        if marker is None or not item.function.__doc__:
            raise pytest.UsageError(f"{item.nodeid} needs @pytest.mark.attack(finding) and a docstring: what is tried")
        rows.belong(item, marker.args[0], item.function.__doc__.splitlines()[0])
