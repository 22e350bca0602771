"""Leases and login pods of nodes that etcd does not hear of any more, over a real etcd with real leases."""

import time
from ipaddress import IPv4Address
from types import SimpleNamespace

import pytest

from isthmus.clients.etcd.store import DeniedError, Etcd
from isthmus.clients.etcd.wire import prefix_range
from isthmus.model.network import Node
from isthmus.network.bounds import LOGIN_FIRST
from isthmus.network.main import Daemon
from isthmus.network.state.heartbeats import Heard, Pulse, Silence, Times
from isthmus.network.state.ipam import Request
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import HeardError, Store
from isthmus.network.state.view import View
from tests.support.servers.etcd import HEARTBEATS_PREFIX, running
from tests.support.wait import stays, wait

# etcd's shortest lease: more than an election takes, which is 1 s.
TTL_S = 2
ALICE, BOB = 2001, 2002


@pytest.fixture
def store(etcd, store):
    etcd.call("kv/deleterange", prefix_range(HEARTBEATS_PREFIX))
    for number, name in enumerate(("l1", "l2"), 1):
        store.announce(Node(name, IPv4Address(f"10.0.0.{number}")))
    return store


def login(store, number, uid, node):
    store.take(Request(LOGIN_FIRST + number, uid, f"user{uid}", "login", (node,)))


def tie(store):
    """Let alice be logged in on both hosts, and bob have a lease on each; a job of alice's is on l1 too."""
    login(store, 0, ALICE, "l1")
    login(store, 1, ALICE, "l2")
    store.take(Request(7, ALICE, "user2001", "run", ("l1",)))
    for node in ("l1", "l2"):
        store.lease(BOB, "user2002", node, 0)
        store.lease(ALICE, "user2001", node, 0)


def expire(store, node):
    """Let a node be heard of, and then no more."""
    store.heartbeats.begin(node, TTL_S)
    assert node in store.heartbeats.read().alive
    wait(lambda: node not in store.heartbeats.read().alive, timeout_s=30)


def test_silent_node_loses_leases_and_login_pods_and_nothing_else(store):
    tie(store)
    expire(store, "l1")
    assert store.end_silent("l1") == 3
    state = store.load().state
    assert set(state.jobs) == {7, LOGIN_FIRST + 1}
    assert set(state.leases) == {(ALICE, "l2"), (BOB, "l2")}
    assert set(state.users[BOB].legs) == {"l2"}
    # Her job there needs the leg.
    assert set(state.users[ALICE].legs) == {"l1", "l2"}
    assert set(state.nodes) == {"l1", "l2"}
    assert store.end_silent("l1") == 0


def test_node_that_is_heard_of_again_loses_nothing(store):
    tie(store)
    before = store.load().revisions
    expire(store, "l1")
    store.heartbeats.begin("l1", 60)
    with pytest.raises(HeardError, match="alive/l1 again"):
        store.end_silent("l1")
    assert store.load().revisions == before


def test_node_that_beats_is_alive_for_longer_than_its_lease(store):
    pulse = Pulse(store.heartbeats, "l1", Times(2 * TTL_S))
    revision = store.load().state.revision
    pulse.beat()
    first = store.load().state.revision

    def is_alive():
        pulse.beat()
        return store.heartbeats.read() == Heard(frozenset({"l1"}), frozenset({"l1"}))

    stays(is_alive, seconds=3 * TTL_S, because="three times as long as its lease")
    # A beat writes nothing but the first.
    assert store.load().state.revision == first == revision + 1
    wait(lambda: not store.heartbeats.read().alive, timeout_s=30)
    pulse.beat()
    assert store.heartbeats.read().alive == {"l1"}


def test_forgotten_node_is_judged_no_more(store):
    store.heartbeats.begin("l1", 60)
    store.forget("l1")
    assert store.heartbeats.read() == Heard(frozenset(), frozenset())


def test_account_without_the_right_is_refused_and_may_still_forget(cluster, store):
    other = Store(Etcd(cluster.access()), Keys("other"), store._ranges)
    root = Etcd(cluster.access("root"))
    before = root.call("lease/leases", {}).get("leases")
    with pytest.raises(DeniedError):
        other.heartbeats.begin("l1", 60)
    assert root.call("lease/leases", {}).get("leases") == before
    other.heartbeats.withdraw("l1")


def test_etcd_that_was_away_has_forgotten_nobody(tmp_path, store):
    """Its leases begin again when it does: nobody could be heard of meanwhile."""
    with running(tmp_path, "--unsafe-no-fsync=false") as cluster:
        its = Store(Etcd(cluster.access()), Keys("test"), store._ranges)
        lease = its.heartbeats.begin("l1", 3 * TTL_S)
        cluster.stop()
        time.sleep(3 * TTL_S)
        cluster.start()
        assert its.heartbeats.read().alive == {"l1"}
        assert its.heartbeats.goes_on(lease)


def test_controllers_daemon_ends_what_silent_nodes_had(store, caplog):
    tie(store)
    store.heartbeats.begin("l2", 60)
    daemon = Daemon(SimpleNamespace(lease_ttl_s=TTL_S), store, SimpleNamespace(view=View(store.load())))
    daemon._end_silent(Silence(0))
    assert len(store.load().state.leases) == 4, "l1 was never heard of: an older daemon"
    expire(store, "l1")
    daemon._end_silent(Silence(60))
    assert len(store.load().state.leases) == 4, "its time is not over"
    daemon._end_silent(Silence(0))
    assert set(store.load().state.leases) == {(ALICE, "l2"), (BOB, "l2")}
    assert "l1 has not been heard of for 2 s: 3 leases and login pods there are ended" in caplog.text
