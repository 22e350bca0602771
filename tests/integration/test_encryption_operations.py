"""What the daemon answers on a node that encrypts, over a real etcd; the device is a fake."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from isthmus.clients.wireguard.keys import new_pair
from isthmus.model.networks.wireguard import Peer
from isthmus.network.api.messages import Rekey, Status
from isthmus.network.api.operations import Operations
from isthmus.network.encryption.follow import Encryptor, Own
from isthmus.network.encryption.records import Statement, encode
from isthmus.network.encryption.settings import EncryptionSettings
from tests.support.fakes.wires import FakeTunnel, FakeWay
from tests.support.networks.daemons import ALICE, code, prepare, two_hosts
from tests.support.networks.wires import AUTHORITIES, certified
from tests.support.wait import wait

C1, C2 = IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")
# The daemon keeps five seconds of it for etcd's answer, so this waits for keys for a moment.
SOON_S = 5.2


@pytest.fixture
def hosts(cluster, tmp_path):
    with two_hosts(cluster, tmp_path) as made:
        yield made


@pytest.fixture
def node(hosts):
    """c1, which encrypts; nobody else does yet."""
    host, _ = hosts
    host.store.encryption.withdraw("c2")
    own = Own("c1", C1, 1440, certified("c1", C1))
    tunnel = FakeTunnel()
    host.encryptor = Encryptor(
        own, EncryptionSettings(), host.store.encryption, AUTHORITIES, tunnel, FakeWay(), grace_s=0, publish_s=-1
    )
    host.tunnel = tunnel
    host.operations = Operations(replace(host.operations._deps, encryptor=host.encryptor))
    follow(host)
    return host


def follow(host):
    host.encryptor.take_all(host.store.encryption.read())
    return host.encryptor.run()


def publish(host):
    statement = Statement("c2", Peer(new_pair().public, C2), 1)
    host.store.encryption.publish("c2", encode(statement, "test", certified("c2", C2)))
    follow(host)


def names(host):
    """Whose records there are."""
    return {key.removeprefix(host.store.encryption.prefix) for key in host.store.encryption.read().entries}


def test_job_on_a_node_without_a_key_is_refused_and_takes_nothing(node):
    reply = node.ask(prepare(timeout_s=SOON_S))
    assert code(reply) == "failed"
    assert "c2: it has published no key" in reply["error"]["message"]
    assert "run playbooks/network.yml" in reply["error"]["message"]
    assert node.store.load().state.jobs == {}


def test_job_begins_when_all_its_nodes_have_keys(node):
    publish(node)
    assert node.ask(prepare())["ok"]
    assert node.ask(prepare(8, nodes=("c1",)))["ok"]


def test_job_on_one_node_needs_that_nodes_device_alone(node):
    assert node.ask(prepare(nodes=("c1",)))["ok"]
    node.tunnel.device, node.tunnel.why = None, "this kernel has none; install it"
    follow(node)
    reply = node.ask(prepare(8, nodes=("c1",), timeout_s=SOON_S))
    assert (code(reply), reply["error"]["message"]) == ("failed", node.tunnel.why)


def test_status_shows_root_whom_the_node_does_not_reach(node):
    lacking = node.ask(Status())
    assert lacking["encryption"]["not_reached"] == "c2"
    assert "c2" in lacking["errors"]["encryption"]
    assert not {"encryption", "errors"} & {name for name, value in node.ask(Status(), ALICE).items() if value}
    publish(node)
    found = node.ask(Status())
    assert (found["encryption"]["not_reached"], found["encryption"]["peers"], found["errors"]) == ("", 1, {})
    assert found["encryption"]["public_key"] == node.tunnel.device.public_key


def test_root_has_the_key_changed_and_nobody_else(node):
    key = node.tunnel.device.public_key
    assert code(node.ask(Rekey(), ALICE)) == "forbidden"
    assert node.ask(Rekey())["ok"]
    follow(node)
    assert node.tunnel.device.public_key != key


def test_node_that_does_not_encrypt_has_no_key(hosts):
    _, host = hosts
    assert code(host.ask(Rekey())) == "invalid"
    assert "encryption" not in host.ask(Status())


def test_node_that_is_forgotten_loses_its_record(hosts, node):
    publish(node)
    assert names(node) == {"c1", "c2"}
    node.store.forget("c2")
    wait(lambda: "c2" not in node.view.state().nodes, timeout_s=10)
    assert names(node) == {"c1"}
