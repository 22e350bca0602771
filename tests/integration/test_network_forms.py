"""Daemons of an earlier Isthmus among the members: what they cannot read is not written, and the rest works on."""

import re
from ipaddress import IPv4Address

import pytest

from isthmus.clients.etcd.store import Put
from isthmus.model.network import Driver, Exposure, Node, Transport
from isthmus.network.gateways.active import OLDER_S, Election, Gateway
from isthmus.network.main import _announce
from isthmus.network.state.codec import encode, key_of
from isthmus.network.state.keys import Keys
from isthmus.network.state.store import OlderMembersError
from isthmus.network.state.view import View
from tests.integration.test_network_store import request

KEYS = Keys("test")
ALICE = 2001
OLD, NEW = (Node(name, IPv4Address(f"192.0.2.{number}")) for number, name in enumerate(("c1", "c2"), 1))
GATEWAY = Node("g1", IPv4Address("192.0.2.9"), gateway=True)
DOOR = Exposure(IPv4Address("198.51.100.10"), Transport.TCP, 80, ALICE, "web")
# The first words of a key that 0.1.0 knows.
FIRST = {"nodes", "users", "jobs", "leases", "attachments", "ranges"}


class Outside:
    """Outside addresses that nothing is wrong with."""

    def is_reached(self):
        return True

    def announce(self):
        pass

    def resume(self):
        pass


@pytest.fixture
def mixed(etcd, store):
    """A store of this version; of two nodes one has a daemon of 0.1.0, which publishes no form."""
    store.forms.withdraw(OLD.name)
    store.forms.withdraw(GATEWAY.name)
    etcd.transact({}, [Put(KEYS.path(key_of(OLD)), encode(OLD))])
    store.announce(NEW)
    return store


def written(etcd):
    """Return the keys that there are, and the nodes' values."""
    entries = etcd.range(KEYS.prefix).entries.values()
    return {entry.key.removeprefix(KEYS.prefix): entry.value for entry in entries}


def are_read_by_the_first(found):
    return {key.split("/")[0] for key in found} <= FIRST and not [text for text in found.values() if "gateway" in text]


def test_what_older_daemons_read_is_written(etcd, mixed):
    mixed.take(request(1, nodes=("c1", "c2")))
    mixed.lease(ALICE, "alice", "c2", 0)
    mixed.reserve(ALICE, "alice", "web")
    assert set(mixed.load().state.jobs) == {1}
    assert are_read_by_the_first(written(etcd))


def test_what_they_cannot_read_is_refused_with_their_names(etcd, mixed):
    mixed.reserve(ALICE, "alice", "web")
    before = written(etcd)
    refused = re.escape("could not read this: c1; run playbooks/network.yml for them")
    with pytest.raises(OlderMembersError, match=refused):
        mixed.expose(DOOR, "alice")
    with pytest.raises(OlderMembersError, match=refused):
        mixed.take(request(2, nodes=("c2",), driver=Driver.ROUTED))
    with pytest.raises(OlderMembersError, match=refused):
        mixed.announce(GATEWAY)
    assert written(etcd) == before
    # Its daemon is of this version now.
    mixed.announce(OLD)
    assert mixed.expose(DOOR, "alice")


def test_gateway_is_none_until_every_member_can_read_that_it_is_one(etcd, mixed):
    _announce(mixed, GATEWAY)
    view = View(mixed.load())
    assert GATEWAY.name in view.snapshot.state.nodes
    gateway = Gateway(GATEWAY, Election(etcd, KEYS, "g1", 2), mixed, view, Outside(), lambda: True)
    assert gateway.turn(view.snapshot.state) == OLDER_S
    assert are_read_by_the_first(written(etcd))
    mixed.announce(OLD)
    assert gateway.turn(mixed.load().state) < OLDER_S
    state = mixed.load().state
    assert (state.gateways, state.gateway, set(state.heard)) == ({"g1"}, "g1", {"g1"})


def test_where_there_is_such_a_record_already_the_rest_goes_on(etcd, mixed):
    """A cluster of between two releases: its daemons read these, and publish nothing."""
    etcd.transact({}, [Put(KEYS.path(key_of(GATEWAY)), encode(GATEWAY))])
    mixed.reserve(ALICE, "alice", "web")
    assert mixed.expose(DOOR, "alice")
    assert not mixed.announce(GATEWAY)


def test_node_that_was_forgotten_holds_nothing_up(mixed):
    mixed.forget(OLD.name)
    assert mixed.announce(GATEWAY)
