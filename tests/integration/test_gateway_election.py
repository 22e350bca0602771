"""Which gateway leads out, who has legs there, and what users open: over a real etcd."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Exposure, Node, Transport
from isthmus.network.gateways.active import Election, lacking
from isthmus.network.gateways.exposing import EXPOSED_MAX, ExposeError
from isthmus.network.state.ipam import NotReservedError, Request
from isthmus.network.state.keys import Keys
from tests.support.wait import wait

ALICE, BOB = 2001, 2002
SEEN = IPv4Address("198.51.100.10")
# etcd's shortest lease.
TTL_S = 2


BOTH = ("g1", "g2")


@pytest.fixture
def elections(etcd):
    return [Election(etcd, Keys("test"), name, TTL_S, grace_s=0.2) for name in BOTH]


def leading(store):
    return store.load().state.gateway


def test_first_to_come_leads_and_keeps_it(elections, store):
    first, second = elections
    for _ in range(3):
        first.campaign(BOTH)
        second.campaign(BOTH)
        assert (leading(store), first.is_leader, second.is_leader) == ("g1", True, False)
    assert set(store.load().state.heard) == {"g1", "g2"}


def test_who_is_not_heard_of_is_followed_and_takes_nothing_back(elections, store):
    first, second = elections
    first.campaign(BOTH)
    second.campaign(BOTH)

    def is_followed():
        second.campaign(BOTH)
        return second.is_leader

    wait(is_followed, timeout_s=30)
    state = store.load().state
    assert (state.gateway, set(state.heard)) == ("g2", {"g2"})
    first.campaign(BOTH)
    assert (leading(store), first.is_leader) == ("g2", False)


def test_gateway_goes_on_leading_where_nobody_follows(elections, store):
    """Its daemon is stopped, or etcd ends its lease without hearing of anybody."""
    elections[0].campaign(BOTH)
    elections[0].resign()
    state = store.load().state
    assert (state.gateway, set(state.heard)) == ("g1", set())


def test_who_leaves_is_followed_after_a_grace(etcd, store):
    now = [0.0]
    first, second = (Election(etcd, Keys("test"), name, 60, 0.5, lambda: now[0]) for name in BOTH)
    first.campaign(BOTH)
    second.campaign(BOTH)
    first.resign()
    second.campaign(BOTH)
    now[0] = 0.4
    second.campaign(BOTH)
    assert leading(store) == "g1"
    # It is heard of again, and then no more: the time begins anew.
    first.campaign(BOTH)
    second.campaign(BOTH)
    first.resign()
    now[0] = 0.7
    second.campaign(BOTH)
    now[0] = 1.1
    second.campaign(BOTH)
    assert leading(store) == "g1"
    now[0] = 1.2
    second.campaign(BOTH)
    assert leading(store) == "g2"


def test_who_is_no_gateway_any_more_is_followed_at_once(elections, store):
    first, second = elections
    first.campaign(BOTH)
    second.campaign(["g2"])
    assert leading(store) == "g2"


def test_daemon_that_begins_again_goes_on_leading(elections, store, etcd):
    first, second = elections
    first.campaign(BOTH)
    Election(etcd, Keys("test"), "g1", 60).campaign(BOTH)
    # The lease of the one before ends.
    first.resign()
    second.campaign(BOTH)
    assert (leading(store), "g1" in store.load().state.heard) == ("g1", True)


@pytest.fixture
def gated(store):
    for number, name in enumerate(("c1", "g1", "g2"), 1):
        store.announce(Node(name, IPv4Address(f"10.0.0.{number}"), gateway=name == "g1"))
    store.take(Request(7, ALICE, "alice", "run", ("c1",)))
    return store


def test_user_with_jobs_has_a_leg_on_each_gateway_until_they_end(gated):
    assert set(gated.load().state.users[ALICE].legs) == {"c1", "g1"}
    gated.lease(BOB, "bob", "c1", 0)
    assert set(gated.load().state.users[BOB].legs) == {"c1"}, "a process of a host goes out by the host"
    gated.release(gated.load().jobs())
    assert not gated.load().state.users[ALICE].legs


def test_new_gateway_gives_itself_the_legs_that_lack(gated):
    gated.announce(Node("g2", IPv4Address("10.0.0.3"), gateway=True))
    gated.lease(BOB, "bob", "c1", 0)
    assert lacking(gated.load().state, "g2") == [ALICE]
    assert gated.lead_out(ALICE, "g2")
    assert not gated.lead_out(ALICE, "g2")
    assert not gated.lead_out(BOB, "g2")
    assert not gated.lead_out(ALICE, "c2"), "no gateway"
    state = gated.load().state
    assert (lacking(state, "g2"), set(state.users[ALICE].legs)) == ([], {"c1", "g1", "g2"})


def port(number, uid=ALICE, name="web"):
    return Exposure(SEEN, Transport.TCP, number, uid, name)


@pytest.fixture
def reserved(store):
    for uid, user in ((ALICE, "alice"), (BOB, "bob")):
        store.reserve(uid, user, "web")
    return store


def test_port_has_one_owner(reserved):
    assert reserved.expose(port(443), "alice")
    assert not reserved.expose(port(443), "alice")
    with pytest.raises(ExposeError, match="another user's"):
        reserved.expose(port(443, BOB), "bob")
    assert not reserved.withdraw(port(443, BOB))
    reserved.reserve(ALICE, "alice", "other")
    with pytest.raises(ExposeError, match="withdraw web:443 first"):
        reserved.expose(port(443, name="other"), "alice")
    assert reserved.withdraw(port(443))
    assert reserved.expose(port(443, BOB), "bob")


def test_port_of_no_reservation_is_refused(reserved):
    with pytest.raises(NotReservedError, match="isthmus network reserve db"):
        reserved.expose(port(443, name="db"), "alice")


def test_reservation_that_goes_closes_its_ports_and_no_others(reserved):
    reserved.reserve(ALICE, "alice", "other")
    before = reserved.load()
    for each in (port(443), port(444), port(445, name="other"), port(446, BOB)):
        reserved.expose(each, "someone")
    # By a snapshot that has seen none of them.
    reserved.unreserve(ALICE, "web", before)
    assert {each.port for each in reserved.load().state.exposed.values()} == {445, 446}


def test_ports_of_a_user_are_few(reserved):
    for number in range(1, EXPOSED_MAX + 1):
        reserved.expose(port(number), "alice")
    with pytest.raises(ExposeError, match="as many as one may"):
        reserved.expose(port(443), "alice")
    assert reserved.expose(port(443, BOB), "bob")
    assert len(reserved.load().state.exposed) == EXPOSED_MAX + 1
    assert IPv4Network("10.64.0.0/16").supernet_of(reserved.load().state.users[ALICE].blocks[0])
