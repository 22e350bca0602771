"""Namespaces in users' clusters."""

from pathlib import Path

import pytest

from tests.support.clusters.user_clusters import namespace

MANIFESTS = Path(__file__).parent / "manifests"


@pytest.fixture(scope="session", autouse=True)
def layer(login):
    """Skip where the site has no layer kubernetes."""
    if login.run("test -e /etc/isthmus/kubernetes.json").rc:
        pytest.skip("the site has no layer kubernetes")


@pytest.fixture(scope="module")
def space(mine, images, request):
    """A namespace of the first user's, with all that the manifest of the module's name says; gone at the end."""
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_").replace("_", "-")
    with namespace(mine, name, images, (MANIFESTS / f"{name}.yml").read_text()) as found:
        yield found
