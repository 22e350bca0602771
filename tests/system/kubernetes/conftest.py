"""Clusters of two users, side by side; left as they were found: none."""

import pytest

from tests.support.user_clusters import UserCluster


@pytest.fixture(scope="session", autouse=True)
def layer(login):
    """Skip where the site has no layer kubernetes."""
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")


@pytest.fixture(scope="session")
def clusters(login, user, other_user):
    """Both users' clusters, up; purged at the end."""
    both = [UserCluster(login, name) for name in (user, other_user)]
    for each in both:
        each.down("--purge --yes")
    try:
        for each in both:
            each.up()
        yield both
    finally:
        for each in both:
            each.down("--purge --yes")


@pytest.fixture(scope="session")
def mine(clusters):
    """The first user's."""
    return clusters[0]


@pytest.fixture(scope="session")
def theirs(clusters):
    """The other's."""
    return clusters[1]
