"""Tests of a deployed cluster, whichever inventory it came from; molecule's verifier runs them too."""

from tests.support.fixtures import cluster, computes, controller, login, nodes, other_user, two_computes, user

__all__ = ["cluster", "computes", "controller", "login", "nodes", "other_user", "two_computes", "user"]
