"""The device follows the records, and nothing leaves before it does."""

import json
import time
from ipaddress import IPv4Address

import pytest

from isthmus.clients.wireguard.keys import new_pair
from isthmus.model.networks.wireguard import PORT, Device, Peer
from isthmus.network.encryption.follow import Encryptor, Own
from isthmus.network.encryption.records import Statement, encode
from isthmus.network.encryption.settings import EncryptionSettings
from tests.support.fakes.wires import FakeRecords, FakeTunnel, FakeWay
from tests.support.networks.wires import AUTHORITIES, CLUSTER, certified

C1, C2, C3 = (IPv4Address(f"192.0.2.{number}") for number in (1, 2, 3))
MEMBERS = {"c1": C1, "c2": C2}
DAY_S = 86_400


class Node:
    """c1, with time that goes on when it is told to."""

    def __init__(self, **settings):
        self.tunnel, self.way, self.records = FakeTunnel(), FakeWay(), FakeRecords(CLUSTER)
        self.now_s = 1_000_000.0
        self.encryptor = self.restart(**settings)

    def restart(self, identity=None, **settings):
        own = Own("c1", C1, 1440, identity or certified("c1", C1))
        self.encryptor = Encryptor(
            own,
            EncryptionSettings(**settings),
            self.records,
            AUTHORITIES,
            self.tunnel,
            self.way,
            grace_s=0,
            publish_s=-1,
            clock=lambda: self.now_s,
        )
        return self.encryptor

    def follow(self):
        self.encryptor.take_all(self.records.read())
        return self.encryptor.run()

    def other(self, node="c2", address=C2, key=None, made_s=1):
        peer = Peer(key or new_pair().public, address)
        self.records.write(node, encode(Statement(node, peer, made_s), CLUSTER, certified(node, address)))
        return peer

    def stated(self):
        return json.loads(json.loads(self.records.entries["c1"][0])["statement"])


@pytest.fixture
def node():
    return Node()


def test_node_makes_a_key_and_publishes_its_public_half_alone(node):
    assert node.follow() == ""
    assert node.stated()["public_key"] == node.tunnel.device.public_key
    (private,) = node.tunnel.privates
    assert private.hex() not in node.records.entries["c1"][0]
    assert (node.tunnel.device.port, node.way.mtu) == (PORT, 1440)


def test_private_key_is_in_no_log(node, caplog):
    caplog.set_level(0)
    node.follow()
    (private,) = node.tunnel.privates
    assert node.tunnel.device.public_key in caplog.text
    assert not any(each in caplog.text for each in (private.hex(), repr(private)))


def test_nothing_is_done_before_etcd_was_read_and_jobs_wait(node):
    assert node.encryptor.run() == "etcd was not read yet"
    assert (node.tunnel.device, node.records.published) == (None, [])
    assert node.encryptor.wait_for(MEMBERS, 0) == "etcd was not read yet"


def test_second_pass_changes_nothing(node):
    node.other()
    node.follow()
    before = node.tunnel.device, node.way.seen, list(node.records.published)
    node.follow()
    assert (node.tunnel.device, node.way.seen, node.records.published) == before
    assert len(node.tunnel.changes) == 1


def test_peers_come_and_go_one_by_one(node):
    first = node.other()
    node.follow()
    assert node.tunnel.device.peers == {first.public_key: first}
    assert node.way.seen.peers == {C2}
    second = node.other("c3", C3)
    node.follow()
    assert node.tunnel.changes[-1] == (set(), {second.public_key})
    del node.records.entries["c2"]
    node.follow()
    assert node.tunnel.changes[-1] == ({first.public_key}, set())
    assert node.way.seen.peers == {C3}


def test_peer_with_another_key_takes_the_place_of_the_former(node):
    first = node.other()
    node.follow()
    second = node.other(made_s=2)
    node.follow()
    assert node.tunnel.changes[-1] == ({first.public_key}, {second.public_key})
    assert node.way.seen.peers == {C2}


def test_peer_that_another_program_changed_is_mended(node):
    peer = node.other()
    node.follow()
    node.tunnel.device = Device(node.tunnel.device.public_key, PORT, {peer.public_key: Peer(peer.public_key, C3)})
    node.follow()
    assert node.tunnel.device.peers == {peer.public_key: peer}


def test_node_that_another_answers_for_is_none(node):
    node.records.write("c2", encode(Statement("c2", Peer(new_pair().public, C2), 1), CLUSTER, certified("c3", C3)))
    node.follow()
    assert (dict(node.tunnel.device.peers), node.way.seen.peers, node.way.seen.closed) == ({}, frozenset(), True)
    why = node.encryptor.wait_for(MEMBERS, 0)
    assert why.startswith("no encrypted way to 1 of the nodes (c2: its certificate is another node's)")
    assert "run playbooks/network.yml" in why


def test_jobs_wait_for_nodes_without_a_key(node):
    node.follow()
    begun_s = time.monotonic()
    assert "c2: it has published no key" in node.encryptor.wait_for(MEMBERS, 0.05)
    assert time.monotonic() - begun_s >= 0.05
    node.other()
    node.follow()
    assert node.encryptor.wait_for(MEMBERS, 0) == ""
    assert "another address" in node.encryptor.wait_for({"c2": C3}, 0)
    assert node.encryptor.status(MEMBERS) | {"public_key": ""} == {
        "kind": "wireguard",
        "program": "kernel",
        "public_key": "",
        "peers": 1,
        "sessions": 0,
        "not_reached": "",
    }


def test_kernel_without_wireguard_is_reported_and_nothing_leaves(node):
    node.other()
    node.tunnel.why = "no such device; set it otherwise"
    assert node.follow() == node.tunnel.why == node.encryptor.wait_for({"c1": C1}, 0)
    assert node.way.seen.closed
    assert node.way.seen.peers == frozenset()
    node.tunnel.why = ""
    assert node.follow() == node.encryptor.wait_for(MEMBERS, 0) == ""


def test_device_that_ended_gets_another_key_and_its_peers(node):
    peer = node.other()
    node.follow()
    first = node.tunnel.device.public_key
    node.tunnel.device = None
    node.follow()
    assert node.tunnel.device.public_key not in ("", first)
    assert node.stated()["public_key"] == node.tunnel.device.public_key
    assert node.tunnel.device.peers == {peer.public_key: peer}


def test_daemon_that_starts_again_keeps_key_and_sessions(node):
    node.other()
    node.follow()
    before = node.tunnel.device, node.stated()
    node.restart(identity=node.encryptor._own.identity)
    node.follow()
    assert (node.tunnel.device, node.stated()) == before
    assert len(node.tunnel.privates) == 1


def test_new_certificate_is_published_with_the_same_key(node):
    node.follow()
    before = node.stated()
    node.restart()
    node.follow()
    assert node.stated() == before
    assert node.records.published == ["c1", "c1"]


@pytest.mark.parametrize("damage", ["", "{}", "foreign"])
def test_own_record_that_somebody_changed_is_written_again(node, damage):
    node.follow()
    key = node.tunnel.device.public_key
    foreign = encode(Statement("c1", Peer(new_pair().public, C1), 2**40), CLUSTER, certified("c2", C2))
    node.records.write("c1", foreign if damage == "foreign" else damage)
    node.follow()
    assert node.stated()["public_key"] == key == node.tunnel.device.public_key


def test_node_whose_key_another_took_before_makes_another_one(node):
    node.follow()
    key = node.tunnel.device.public_key
    del node.records.entries["c1"]
    node.other(key=key)
    node.follow()
    node.follow()
    assert node.tunnel.device.public_key != key
    assert node.stated()["public_key"] == node.tunnel.device.public_key


@pytest.mark.parametrize(("days", "changed"), [(29, False), (34, True)])
def test_key_is_changed_by_age(days, changed):
    node = Node(key_s=30 * DAY_S)
    peer = node.other()
    node.follow()
    key = node.tunnel.device.public_key
    node.now_s += days * DAY_S
    node.follow()
    assert (node.tunnel.device.public_key != key) is changed
    assert node.tunnel.woken == ([peer.public_key] if changed else [])


def test_key_is_changed_on_request_once(node):
    node.other()
    node.follow()
    node.encryptor.rekey()
    node.follow()
    node.follow()
    assert len(node.tunnel.privates) == 2
    assert node.stated()["public_key"] == node.tunnel.device.public_key


def test_key_that_cannot_be_published_is_not_used(node):
    node.follow()
    key = node.tunnel.device.public_key
    node.records.is_down = True
    node.encryptor.rekey()
    assert node.follow() == "etcd is down"
    assert node.tunnel.device.public_key == key
    node.records.is_down = False
    node.follow()
    assert node.tunnel.device.public_key != key


def test_clock_that_was_set_back_makes_no_record_that_looks_old(node):
    node.follow()
    before = node.stated()["made_s"]
    node.now_s -= 10_000
    node.encryptor.rekey()
    node.follow()
    assert node.stated()["made_s"] == before + 1


def test_node_with_another_nodes_certificate_publishes_nothing(node):
    node.restart(identity=certified("c2", C2))
    assert "this node cannot say who it is: its certificate is another node's" in node.follow()
    assert node.records.published == []
