"""One API server for all tests of this folder."""

import pytest

from tests.support.servers import kubelet_server
from tests.support.servers.api_server import api_server as serving
from tests.support.servers.api_user import KubeUser
from tests.support.servers.kubelet_bed import Bed


@pytest.fixture(scope="session")
def api_server(tmp_path_factory):
    """A real API server with nothing in it but its own namespaces."""
    with serving(tmp_path_factory.mktemp("kube")) as server:
        yield server


@pytest.fixture(scope="module")
def bed(api_server, tmp_path_factory):
    """A kubelet that runs, and all around it."""
    bed = Bed(api_server, tmp_path_factory.mktemp("home"))
    bed.start()
    yield bed
    KubeUser(api_server).clear()
    bed.close()


@pytest.fixture
def api(api_server):
    """A user of the API server."""
    return KubeUser(api_server)


@pytest.fixture(scope="module")
def served(api_server, tmp_path_factory):
    """Give the kubelet's server, with a running pod and its fake supervisor."""
    with kubelet_server.serving(api_server, tmp_path_factory.mktemp("kubelet")) as given:
        yield given
