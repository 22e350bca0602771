"""Encryption between nodes: etcd, WireGuard's program, routes and filters in namespaces, and what is on the wire."""

import socket
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from ipaddress import IPv4Address
from threading import Thread

import pytest

from isthmus.clients.wireguard.keys import new_pair
from isthmus.model.networks.wireguard import DEVICE, OVERHEAD, PORT, Peer, Program
from isthmus.model.node_network import VXLAN_PORT, mac
from isthmus.network.encryption.records import Statement, encode
from tests.support.networks import packets
from tests.support.networks.encrypted import ENCRYPTED, SERVED, Wiretap, World
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, MEMBERS
from tests.support.networks.wires import MTU, certified, kernel_has_wireguard
from tests.support.wait import wait

pytestmark = needs_root
LISTENED = 6000
# linux/in.h
MTU_DISCOVER, DO = 10, 2
SECRET = b"correct horse battery staple"


@pytest.fixture(scope="module", params=Program)
def by(request):
    if request.param is Program.KERNEL and not kernel_has_wireguard():
        pytest.skip("this kernel has no WireGuard")
    return request.param


@pytest.fixture
def world(by, cluster, tmp_path):
    """One in which nobody encrypts yet."""
    with ExitStack() as stack:
        yield World(stack, cluster, tmp_path, by)


@pytest.fixture(scope="module")
def encrypted(by, cluster, tmp_path_factory):
    """One in which all do."""
    with ExitStack() as stack:
        made = World(stack, cluster, tmp_path_factory.mktemp("encrypted"), by)
        made.start(*MEMBERS)
        yield made


@pytest.fixture
def tap(request):
    name = next(each for each in ("world", "encrypted") if each in request.fixturenames)
    with closing(Wiretap(request.getfixturevalue(name))) as made:
        yield made


def test_pods_reach_one_another_and_the_wire_shows_nothing(encrypted, tap):
    with encrypted.pod("n2").open(UDP, "", LISTENED) as receiver:
        receiver.settimeout(15)
        with encrypted.pod("n1").open(UDP) as sender:
            sender.sendto(SECRET, (str(encrypted.net.pod_address("n2", 1)), LISTENED))
        assert receiver.recv(99) == SECRET
    assert encrypted.reaches("n1", "n2") == str(encrypted.net.pod_address("n1", 1))
    assert encrypted.reaches("n2", "n1", 2) == str(encrypted.net.pod_address("n2", 2))
    host, leg = encrypted.net.nodes.places["n3"], encrypted.net.leg("n3", ALICE)
    assert host.asks(encrypted.net.pod_address("n1", 1), SERVED) == str(leg)
    tap.hear()
    assert tap.udp(PORT) > 10
    assert tap.udp(VXLAN_PORT) == 0
    assert not any(SECRET in frame for frame in tap.frames)


def test_largest_packet_of_a_pod_passes_whole_and_a_larger_one_does_not(encrypted, tap):
    target = str(encrypted.net.pod_address("n2", 1)), LISTENED
    room = MTU - OVERHEAD - 50 - 28
    with encrypted.pod("n2").open(UDP, "", LISTENED) as receiver, encrypted.pod("n1").open(UDP) as sender:
        receiver.settimeout(15)
        sender.setsockopt(socket.IPPROTO_IP, MTU_DISCOVER, DO)
        sender.sendto(bytes(room), target)
        assert len(receiver.recv(9999)) == room
        with pytest.raises(OSError, match="Message too long"):
            sender.sendto(bytes(room + 1), target)
    assert max(len(frame) for frame in tap.hear().frames) <= MTU + 14


def test_nothing_is_sent_to_a_node_without_a_key_nor_taken_from_it(world, tap):
    """A node that encrypts, and one that does not yet: the site is being changed."""
    world.start("n1")
    world.net.filter("n2")
    world.wires["n2"].place.do(world.wires["n2"].way.remove)
    assert world.refused("n1", "n2")
    assert world.refused("n2", "n1")
    # n2 sends as before; n1 drops it, and answers nobody.
    assert {*tap.hear().sources(VXLAN_PORT)} == {world.net.nodes.address("n2")}
    assert "n2: it has published no key" in world.wires["n1"].encryptor.wait_for(
        {"n2": world.net.nodes.address("n2")}, 0
    )
    world.net.filter("n2", ENCRYPTED)
    world.wires["n2"].place.do(world.wires["n2"].encryptor.shut)
    world.start("n2")
    world.follow("n1")
    assert world.reaches("n1", "n2")
    assert world.wires["n1"].encryptor.wait_for({"n2": world.net.nodes.address("n2")}, 0) == ""


def test_program_that_dies_opens_nothing_and_gets_another_key(world, tap):
    world.start("n1", "n2")
    assert world.reaches("n1", "n2")
    key = world.wires["n1"].tunnel.read().public_key
    world.wires["n1"].stop()
    tap.hear().frames.clear()
    assert world.refused("n1", "n2")
    assert tap.hear().udp(VXLAN_PORT) == 0
    world.start("n1")
    world.follow("n2")
    assert world.wires["n1"].tunnel.read().public_key != key
    assert world.reaches("n1", "n2")


def test_key_of_another_node_cannot_be_published(encrypted):
    """n3 has the password of etcd, as all daemons have, and would take n2's packets."""
    honest = encrypted.wires["n2"].records.read().entries[f"{encrypted.records.prefix}n2"].value
    own = Peer(encrypted.wires["n3"].tunnel.read().public_key, encrypted.net.nodes.address("n2"))
    thief = encrypted.wires["n3"].identity
    for statement, identity in (
        (Statement("n2", own, 2**40), thief),
        (Statement("n2", replace(own, address=encrypted.net.nodes.address("n3")), 2**40), thief),
        (Statement("n2", replace(own, public_key=new_pair().public), 2**40), thief),
    ):
        encrypted.wires["n3"].records.publish("n2", encode(statement, encrypted.cluster, identity))
        encrypted.follow("n1")
        peers = encrypted.wires["n1"].tunnel.read().peers.values()
        assert encrypted.net.nodes.address("n2") not in {peer.address for peer in peers}
        assert encrypted.refused("n1", "n2")
        # n2 sees it by its watch, and says again who it is.
        encrypted.follow("n2", "n1")
        assert encrypted.wires["n2"].records.read().entries[f"{encrypted.records.prefix}n2"].value != honest
        assert encrypted.reaches("n1", "n2")


def test_node_cannot_send_with_the_address_of_another(world, tap):
    """n3 is a member with a key of its own; root there forges VXLAN packets of n1."""
    world.start("n1", "n2", "n3")
    n3, target = world.net.nodes.places["n3"], world.net.nodes.address("n2")
    inside = packets.udp(world.net.pod_address("n1", 1), world.net.pod_address("n2", 1), LISTENED, b"forged")
    sender, receiver = world.net.pod_address("n1", 1), world.net.pod_address("n2", 1)
    forged = packets.vxlan(ALICE, packets.ethernet(mac(receiver), mac(sender), packets.IPV4, inside))
    n3.run("nft", "flush", "ruleset")
    with world.pod("n2").open(UDP, "", LISTENED) as victim:
        victim.settimeout(0.5)
        # In the clear, and then by its own tunnel with another's address.
        n3.ip(f"rule add pref 1 to {target} lookup main")
        with n3.open(UDP) as clear:
            clear.sendto(forged, (str(target), VXLAN_PORT))
        with pytest.raises(TimeoutError):
            victim.recv(99)
        n3.ip("rule del pref 1")
        n3.ip(f"addr add {world.net.nodes.address('n1')}/32 dev lo")
        with n3.open(UDP, world.net.nodes.address("n1")) as stolen:
            stolen.sendto(forged, (str(target), VXLAN_PORT))
        with pytest.raises(TimeoutError):
            victim.recv(99)
        # What a member may: as itself. So the two above were refused for their sender.
        with n3.open(UDP, world.net.nodes.address("n3")) as honest:
            honest.sendto(forged, (str(target), VXLAN_PORT))
        assert victim.recv(99) == b"forged"
    assert tap.hear().udp(VXLAN_PORT) >= 1


def test_users_send_nothing_by_the_device(encrypted):
    n1, target = encrypted.net.nodes.places["n1"], encrypted.net.nodes.address("n2")
    assert n1.asks(target, SERVED, UDP, user=ALICE)
    script = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        f"s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'{DEVICE}');"
        f"s.sendto(b'x', ('{target}', %d))"
    )
    for port in (SERVED, VXLAN_PORT):
        tried = n1.run("/usr/bin/python3", "-ISc", script % port, user=ALICE, check=False)
        assert "PermissionError" in tried.stderr, tried


def test_another_key_interrupts_a_connection_for_a_moment(encrypted):
    key = encrypted.wires["n1"].tunnel.read().public_key
    server = encrypted.pod("n2").open(TCP, "", LISTENED)
    server.listen()
    with server, encrypted.pod("n1").open(TCP) as client:
        client.connect((str(encrypted.net.pod_address("n2", 1)), LISTENED))
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(20)
            had = encrypted.wires["n1"].records.read().revision
            encrypted.wires["n1"].encryptor.rekey()
            begun_s = time.monotonic()
            changing = Thread(target=encrypted.follow, args=("n1",))
            changing.start()
            wait(lambda: encrypted.wires["n1"].records.read().revision > had, interval_s=0.02)
            encrypted.follow("n2")
            client.sendall(SECRET)
            assert accepted.recv(99) == SECRET
            assert time.monotonic() - begun_s < 4
            changing.join()
    device = encrypted.wires["n1"].tunnel.read()
    assert device.public_key != key
    assert device.public_key in encrypted.wires["n2"].tunnel.read().peers
    assert key not in encrypted.wires["n2"].tunnel.read().peers
    encrypted.follow("n3")


def test_site_that_encrypts_no_more_is_as_before(world, tap):
    world.start("n1", "n2")
    for name in ("n1", "n2"):
        wire = world.wires[name]
        wire.stop()
        wire.place.do(wire.way.remove)
        wire.records.withdraw(name)
        world.net.filter(name)
    assert world.reaches("n1", "n2")
    assert tap.hear().udp(VXLAN_PORT) > 0
    assert f"lookup {VXLAN_PORT}" not in world.wires["n1"].place.ip("rule")
    assert world.wires["n1"].records.read().entries == {}


def test_threads_follow_what_others_publish(encrypted):
    """As in the daemon: nobody calls `follow` here."""
    encryptors = [encrypted.wires[name].encryptor for name in ("n1", "n2")]
    threads = [Thread(target=loop) for encryptor in encryptors for loop in (encryptor.listen, encryptor.follow)]
    for thread in threads:
        thread.start()
    records, pair = encrypted.wires["n1"].records, new_pair()
    try:
        statement = Statement("n9", Peer(pair.public, IPv4Address("192.0.2.99")), 1)
        records.publish("n9", encode(statement, encrypted.cluster, certified("n9", "192.0.2.99")))
        wait(lambda: pair.public in encrypted.wires["n1"].tunnel.read().peers, timeout_s=10, interval_s=0.1)
        records.withdraw("n9")
        wait(lambda: pair.public not in encrypted.wires["n2"].tunnel.read().peers, timeout_s=10, interval_s=0.1)
    finally:
        for encryptor in encryptors:
            encryptor.close()
        for thread in threads:
            thread.join()
