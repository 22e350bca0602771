"""An upgrade of a whole site under load, on nodes of its own (molecule scenario `upgrade`); the order matters."""

from __future__ import annotations

import pytest

from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, two_computes, user
from tests.support.clusters.upgrade_load import loaded

__all__ = ["cluster", "computes", "controller", "login", "nodes", "two_computes", "user"]


@pytest.fixture(scope="module")
def load(login, controller, two_computes, user):
    """What runs through all tests of a module."""
    with loaded(login, controller, two_computes, user) as found:
        yield found
