"""An upgrade of a whole site under load, on nodes of its own (molecule scenario `upgrade`); the order matters."""

from __future__ import annotations

from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, two_computes, user

__all__ = ["cluster", "computes", "controller", "login", "nodes", "two_computes", "user"]
