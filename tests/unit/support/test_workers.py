import pytest

from tests.support.clusters.workers import own_users

USERS = ["alice", "bob", "carol", "dave", "erin"]


@pytest.mark.parametrize(("worker", "own"), [("", USERS), ("gw0", ["alice", "bob"]), ("gw1", ["carol", "dave"])])
def test_process_has_users_of_its_own(worker, own):
    assert own_users(USERS, worker) == own


def test_process_without_users_says_how_many_may_run():
    with pytest.raises(AssertionError, match="the site has 5 users; give pytest at most -n 2"):
        own_users(USERS, "gw2")


def test_process_is_found_by_its_name(monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    assert own_users(USERS) == ["carol", "dave"]
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    assert own_users(USERS) == USERS


def test_process_may_have_more_users():
    assert own_users([*USERS, "frank"], "gw1", each=3) == ["dave", "erin", "frank"]
    with pytest.raises(AssertionError, match="at most -n 1"):
        own_users(USERS, "gw1", each=3)
