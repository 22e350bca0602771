"""The running test bed, for long tests of it; others make nodes of their own."""

from tests.support.clusters.fixtures import cluster, computes, controller, login, nodes, other_user, two_computes, user

__all__ = ["cluster", "computes", "controller", "login", "nodes", "other_user", "two_computes", "user"]
