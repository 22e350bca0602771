"""Encryption between the nodes of a site that asks for it."""

import json

import pytest

from tests.support.wait import wait
from tests.system.network.test_isolation import ask

STATUS = "isthmus network status --json"


@pytest.fixture(scope="module", autouse=True)
def asked_for(controller):
    """The site has it."""
    if controller.variables["network_encryption"] == "none":
        pytest.skip("packets between this site's nodes are not encrypted: network_encryption")


def status(node):
    return json.loads(node.output(STATUS))


def test_every_node_has_every_other_as_a_peer(controller, two_computes):
    for node in (controller, *two_computes):
        found = status(node)
        assert "encryption" not in found["errors"]
        assert (found["encryption"]["kind"], found["encryption"]["not_reached"]) == ("wireguard", "")
        assert found["encryption"]["peers"] >= len(two_computes)


def test_pods_on_two_nodes_reach_one_another_by_the_device(serving, two_computes, probe):
    near, far = two_computes
    mine = serving[0]
    before = int(near.output("cat /sys/class/net/iw0/statistics/tx_packets"))
    mine[near.name].run(ask(probe, "tcp", mine[far.name].address))
    assert int(near.output("cat /sys/class/net/iw0/statistics/tx_packets")) > before
    assert "unreachable" in near.output("ip route show table 4789")
    assert status(near)["encryption"]["sessions"] > 0


def test_key_is_on_no_disk(two_computes):
    """The device has it, and nothing else that is a file."""
    for node in two_computes:
        found = node.run("grep -rlsE 'PrivateKey|private_key=' /etc/isthmus /var/lib/isthmus /run/isthmus").stdout
        assert found == ""


def test_another_key_is_followed_by_the_other_nodes(serving, two_computes, probe):
    near, far = two_computes
    mine = serving[0]
    key = status(near)["encryption"]["public_key"]
    near.output("isthmus network rekey")
    wait(lambda: status(near)["encryption"]["public_key"], lambda new: new != key, timeout_s=30)
    mine[far.name].run(ask(probe, "tcp", mine[near.name].address))
    mine[near.name].run(ask(probe, "tcp", mine[far.name].address))
