"""One API server for all tests of this folder."""

import pytest

from tests.support import kube


@pytest.fixture(scope="session")
def api_server(tmp_path_factory):
    """A real API server with nothing in it but its own namespaces."""
    with kube.api_server(tmp_path_factory.mktemp("kube")) as server:
        yield server
