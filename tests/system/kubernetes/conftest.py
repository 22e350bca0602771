"""Clusters of two users, side by side, each up when a test asks for it; left as they were found: none."""

import json
from pathlib import Path

import pytest

from tests.support.user_clusters import fresh, namespace, site_images

MANIFESTS = Path(__file__).parent / "manifests"
# Processes that test at once shall end at once: these modules take longest.
LONG = ("test_deaths", "test_data_on_node", "test_mpi_steps", "test_workloads", "test_up")


def pytest_collection_modifyitems(items):
    """Come last: others want users without jobs, and these clusters are up until the end."""
    here = Path(__file__).parent
    items.sort(key=lambda item: 0 if item.path.parent != here else 1 if item.path.stem in LONG else 2)


@pytest.fixture(scope="session", autouse=True)
def layer(login):
    """Skip where the site has no layer kubernetes."""
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")


@pytest.fixture(scope="session")
def settings(login):
    """What the site's admin decided."""
    return json.loads(login.output("cat /etc/isthmus/kubernetes.json"))


@pytest.fixture(scope="session")
def mine(login, user):
    """The first user's."""
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


@pytest.fixture(scope="module")
def space(mine, images, request):
    """A namespace of the first user's, with all that the manifest of the module's name says; gone at the end."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    with namespace(mine, name, images, (MANIFESTS / f"{name}.yml").read_text()) as found:
        yield found
