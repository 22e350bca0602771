"""Services are followed for those who have a login pod and a cluster, and for a while after the cluster."""

import pytest

from isthmus.clients.nftables import NftError
from isthmus.model.network import CONTROL_PLANE, Driver, Job, State
from isthmus.network.logins.services import AGAIN_S, GONE_S, FollowedServices, owners_of_clusters

ALICE = 2001
NETNS = "isthmus-9"


class Host:
    """Units and rules; each call may fail."""

    def __init__(self):
        self.calls, self.error, self.running = [], None, set()
        self.services = FollowedServices(self, self)

    def _note(self, *call):
        self.calls.append(call)
        if self.error:
            raise self.error

    def follow(self, uid):
        self._note("follow", uid)
        self.running.add(uid)

    def unfollow(self, uid):
        self._note("unfollow", uid)
        self.running.discard(uid)

    def followed(self):
        return frozenset(self.running)

    def clear(self, namespace, uid):
        self._note("clear", namespace, uid)

    def look(self, *times):
        """Look at a time in seconds, with a cluster where it is positive, and without where it is not."""
        for at_s in times:
            self.services.look(ALICE, NETNS, abs(at_s), has_cluster=at_s > 0)
        return self.calls


@pytest.fixture
def host():
    return Host()


def job(number, uid, reservation):
    return Job(number, uid, "j", Driver.PRIVATE, ("c1",), (), reservation)


def test_owner_of_a_cluster_has_its_address():
    jobs = [job(1, 2001, CONTROL_PLANE), job(2, 2002, "web"), job(3, 2003, "")]
    assert owners_of_clusters(State(jobs={each.id: each for each in jobs})) == {2001}


def test_program_is_started_once(host):
    assert host.look(1, 2, 3) == [("follow", ALICE)]


def test_program_that_ended_with_all_others_is_started_again(host):
    host.look(1)
    host.services.recall()
    assert not host.services.is_due(ALICE, has_cluster=True)
    host.running.clear()
    host.services.recall()
    assert host.services.is_due(ALICE, has_cluster=True)
    assert host.look(2) == [("follow", ALICE)] * 2


def test_look_is_due_until_it_could_change_nothing(host):
    def due():
        return [host.services.is_due(ALICE, has_cluster=known) for known in (True, False)]

    assert due() == [True, False]
    host.look(1)
    assert due() == [False, True]
    host.look(-2)
    assert due() == [True, True], "that it is back must be seen"
    host.look(3)
    assert due() == [False, True]


def test_user_without_a_cluster_costs_nothing(host):
    assert host.look(-1, -2, -1000) == []


def test_control_plane_that_moves_changes_nothing(host):
    assert host.look(1, -2, -(1 + GONE_S), 3 + GONE_S, -(4 + GONE_S)) == [("follow", ALICE)]


def test_cluster_that_is_gone_leaves_no_services(host):
    assert host.look(1, -2, -(2 + GONE_S), -(100 + GONE_S))[1:] == [("unfollow", ALICE), ("clear", NETNS, ALICE)]
    assert host.look(200)[3:] == [("follow", ALICE)]


@pytest.mark.parametrize("error", [None, OSError("no")])
def test_next_pod_has_its_own(host, error):
    host.look(1)
    host.error = error
    host.services.end(ALICE)
    host.error = None
    host.services.end(ALICE)
    assert host.look(2) == [("follow", ALICE), ("unfollow", ALICE), ("follow", ALICE)]


@pytest.mark.parametrize("error", [OSError("no"), NftError("no")])
def test_failure_is_tried_again_later(host, error, caplog):
    host.error = error
    assert host.look(1, 1 + AGAIN_S / 2) == [("follow", ALICE)]
    assert "services of the login pod of uid 2001" in caplog.text
    host.error = None
    assert host.look(1 + AGAIN_S, 2 + AGAIN_S) == [("follow", ALICE)] * 2
