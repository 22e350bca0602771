"""Pods' way out and in over gateways, with real packets: whom they are seen as, who decides, and who is let in."""

import socket
from contextlib import ExitStack, closing
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from isthmus.clients.netlink.held import DEVICE
from isthmus.model.network import Transport
from isthmus.model.node_network import mac
from isthmus.network.node.rules import Protocol
from isthmus.network.trace.points import Finder
from isthmus.network.trace.way import Probe, Verdict, trace, verdict
from tests.integration.test_rules_forged import received
from tests.support.networks.gateways import (
    ALICE_SEEN,
    CLOSED,
    GATED,
    GATEWAYS,
    NEAR,
    SITE_LAST,
    SITE_SEEN,
    WEB,
    GatedNetworks,
    exposure,
)
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.packets import IPV4, ethernet, tcp_reset, udp
from tests.support.networks.pod_networks import ALICE, ALICES, BOB, DENIED, METADATA, OPEN, SERVED, SLURM
from tests.support.wait import wait

pytestmark = needs_root
SITE = {str(SITE_SEEN), str(SITE_LAST)}
# Bob opens the same ports, and no rule names him; nobody lets anybody in to CLOSED.
EXPOSED = [
    exposure(WEB),
    exposure(WEB, protocol=Transport.UDP),
    exposure(CLOSED),
    exposure(NEAR),
    exposure(WEB, BOB),
]


@pytest.fixture(scope="module")
def gated():
    with ExitStack() as stack:
        made = GatedNetworks.of(stack, EXPOSED)
        for number in (1, 2):
            for port in (CLOSED, NEAR):
                stack.enter_context(made.pod(number).serve("", port))
        for place in made.world.nodes.places.values():
            stack.enter_context(place.serve("", SLURM))
        yield made


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize(("number", "seen"), [(1, {str(ALICE_SEEN)}), (2, SITE)])
def test_pod_is_seen_outside_with_its_users_address(gated, kind, number, seen):
    assert gated.pod(number).asks(OPEN, SERVED, kind) in seen


@pytest.mark.parametrize("number", [1, 2])
def test_pod_reaches_members_by_its_own_node(gated, number):
    own = str(gated.world.nodes.address("n1"))
    assert {gated.pod(number).asks(gated.world.nodes.address(name), SLURM) for name in ("g1", "g2")} == {own}


def test_rules_of_the_outside_hold_on_the_gateway(gated):
    alice, bob = gated.pod(1), gated.pod(2)
    assert alice.refused(DENIED, SERVED)
    assert alice.asks(ALICES, SERVED) == str(ALICE_SEEN)
    assert bob.refused(ALICES, SERVED)
    assert bob.refused(METADATA, SERVED)


def test_users_do_not_reach_one_another_over_the_gateway(gated):
    for place in (gated.world.pod_address("n1", 2), gated.world.leg("g1", BOB), gated.world.leg("g2", BOB)):
        assert gated.pod(1).refused(place, SERVED)
    # Nor by what bob opened to the outside.
    assert gated.pod(1).refused(SITE_SEEN, WEB)


def test_privileged_port_of_a_pod_is_another_outside(gated):
    with gated.place("outside").open(UDP, OPEN, 7001) as server:
        gated.pod(1).asks(OPEN, 7001, UDP, bind=":700", wait_s=0.3)
        server.settimeout(15)
        _, (address, port) = server.recvfrom(99)
    assert (address, port >= 1024) == (str(ALICE_SEEN), True)


@pytest.fixture
def frames(gated):
    """A way to send any frame from alice's pod, as its root with every right; nobody in a real pod has them."""
    pod = gated.pod(1)
    opened = pod.do(socket.socket, socket.AF_PACKET, socket.SOCK_RAW)
    with closing(opened):
        pod.do(opened.bind, ("eth0", 0))
        yield lambda target, packet: opened.send(ethernet(mac(target), mac(own(gated)), IPV4, packet))


def own(gated):
    return gated.world.pod_address("n1", 1)


@pytest.mark.parametrize("hop", ["own leg", "g1", "g2", "bob's leg", "bob's pod"])
def test_no_frame_goes_round_the_gateway(gated, frames, hop):
    hops = {
        "own leg": gated.world.leg("n1", ALICE),
        "g1": gated.world.leg("g1", ALICE),
        "g2": gated.world.leg("g2", ALICE),
        "bob's leg": gated.world.leg("g1", BOB),
        "bob's pod": gated.world.pod_address("n1", 2),
    }
    with gated.place("outside").open(UDP, OPEN, 7002) as server:
        server.settimeout(15)
        frames(hops[hop], udp(own(gated), OPEN, 7002, hop.encode()))
        assert server.recvfrom(99)[1][0] == str(ALICE_SEEN)


def test_nobody_sends_as_another_user(gated, frames):
    bob = gated.world.pod_address("n1", 2)
    with gated.place("outside").open(UDP, OPEN, 7003) as server:
        for hop in (gated.world.leg("g1", ALICE), gated.world.leg("g1", BOB)):
            frames(hop, udp(bob, OPEN, 7003, b"forged"))
            frames(hop, udp(SITE_SEEN, OPEN, 7003, b"forged"))
        assert received(server, 0.5) == b""


def test_gateway_that_does_not_lead_passes_nothing(gated):
    """A node that knows better, or worse, than the gateway itself."""
    known = gated.world.state
    with gated.place("outside").open(UDP, OPEN, 7004) as server:
        try:
            gated.world.state = replace(known, gateway="g2")
            gated.follow("n1", gated.world.state)
            gated.pod(1).asks(OPEN, 7004, UDP, wait_s=0.3)
            assert received(server, 0.3) == b""
        finally:
            gated.world.state = known
            gated.follow("n1", known)


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_exposed_port_is_reached_from_outside_and_sees_who_asks(gated, kind):
    assert gated.place("outside").asks(ALICE_SEEN, WEB, kind) == str(gated.world.nodes.address("outside"))


def test_answer_of_an_exposed_port_is_no_packet_of_the_pods_own(gated):
    """To begin anything there is denied to pods, and stays so."""
    assert gated.place("outside").asks(ALICE_SEEN, WEB, UDP, bind=DENIED)
    assert gated.pod(1).refused(DENIED, SERVED, UDP)


def test_rule_decides_by_where_a_packet_comes_from(gated):
    outside = gated.place("outside")
    assert outside.refused(ALICE_SEEN, WEB, bind=OPEN), "the first rule, though a later one lets everybody in"
    assert outside.refused(ALICE_SEEN, NEAR)


@pytest.mark.parametrize(("address", "port"), [(SITE_SEEN, WEB), (ALICE_SEEN, CLOSED), (ALICE_SEEN, 5999)])
def test_what_no_rule_lets_in_is_refused(gated, address, port):
    assert gated.place("outside").refused(address, port)


def test_outside_address_is_none_of_the_hosts_own(gated):
    """The gateway's own servers listen on all addresses."""
    outside, gateway = gated.place("outside"), gated.world.nodes.address("g1")
    assert outside.asks(gateway, SLURM)
    for address in GATEWAYS.addresses:
        assert outside.refused(address, SLURM)


def test_pods_own_address_is_not_reached_from_outside(gated):
    assert gated.place("outside").refused(own(gated), WEB)


def reported(gated, source, target, port, protocol):
    """Return what a trace says of what comes from outside."""
    find = Finder(gated.world.state, GATED, "cl", None, {}.__getitem__, IPv4Network("10.96.0.0/16"))
    return verdict(trace(find.state, GATED, find.source(source), find.target(target), Probe(protocol, port)))


@pytest.mark.parametrize("protocol", [Protocol.TCP, Protocol.UDP])
@pytest.mark.parametrize("source", ["", str(OPEN)])
def test_verdict_on_what_comes_from_outside_is_what_happens(gated, source, protocol):
    kind = TCP if protocol is Protocol.TCP else UDP
    seen = source or str(gated.world.nodes.address("outside"))
    targets = [
        *((ALICE_SEEN, port) for port in (WEB, CLOSED, NEAR, 5999, SLURM)),
        *((address, WEB) for address in (SITE_SEEN, SITE_LAST, own(gated))),
    ]
    said = {to: reported(gated, seen, str(to[0]), to[1], protocol) is Verdict.PASSES for to in targets}
    outside = gated.place("outside")
    really = {to: bool(outside.asks(*to, kind, bind=source, wait_s=15 if said[to] else 0.5)) for to in targets}
    assert said == really
    # The first rule refuses what comes by TCP from one of them.
    assert any(really.values()) == (not source or protocol is Protocol.UDP)


def test_withdrawn_port_ends_what_is_open(gated):
    known = gated.world.state
    with gated.place("outside").do(socket.create_connection, (str(ALICE_SEEN), WEB), 15) as connection:
        kept = {door: each for door, each in known.exposed.items() if each.port != WEB}
        try:
            gated.world.state = replace(known, exposed=kept)
            gated.follow("g1", gated.world.state)
            connection.send(b"who am I?")
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):
                connection.recv(99)
        finally:
            gated.world.state = known
            gated.follow("g1", known)


def test_gateway_lets_go_of_addresses_that_another_one_has(gated):
    """It alone did not hear that it leads no longer."""
    first, second = gated.held["g1"], gated.held["g2"]
    assert not first.give_up(), "nobody else has them"
    try:
        second._holder.hold(GATEWAYS.addresses)
        assert first.give_up()
        gated.follow("g1", gated.world.state)
        assert DEVICE not in gated.place("g1").ip("-br link")
    finally:
        second._holder.hold(())
        first.resume()
        gated.follow("g1", gated.world.state)
    assert str(ALICE_SEEN) in gated.place("g1").ip(f"addr show dev {DEVICE}")


def test_gateway_sees_that_its_link_has_no_carrier(gated):
    assert gated.held["g2"].is_reached()
    gated.world.nodes.switch.ip("link set g2 down")
    wait(lambda: not gated.held["g2"].is_reached())
    gated.world.nodes.switch.ip("link set g2 up")
    wait(gated.held["g2"].is_reached)


def test_packet_of_no_connection_does_not_leave(gated, frames):
    """Nothing translates it, so it would be seen with the pod's own address."""
    outside = gated.place("outside")
    with closing(outside.do(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)) as listening:
        frames(gated.world.leg("g1", ALICE), tcp_reset(own(gated), OPEN, 7005))
        assert received(listening, 0.5) == b""


def lead(gated, gateway):
    """Let a gateway lead out, and wait until pods go out over it."""
    gated.lead(gateway)
    wait(lambda: gated.announced(gateway) and gated.pod(1).asks(OPEN, SERVED, wait_s=1) == str(ALICE_SEEN))


@pytest.mark.parametrize("number", [1, 3])
def test_open_connections_go_on_over_the_other_gateway(gated, number):
    """Also those of a pod on that very gateway, which saw them cross its bridge."""
    outside, pod = gated.place("outside"), gated.pod(number)
    try:
        with outside.open(TCP, OPEN, 7006) as server:
            server.listen()
            with pod.do(socket.create_connection, (str(OPEN), 7006), 15) as connection, server.accept()[0] as far:
                far.settimeout(15)
                for gateway in ("g1", "g2", "g1"):
                    lead(gated, gateway)
                    connection.send(gateway.encode())
                    assert far.recv(99) == gateway.encode()
    finally:
        lead(gated, "g1")


def test_other_gateway_takes_addresses_ways_and_ports_over(gated):
    """In the end, for nothing is as it was: the first is dead."""
    assert gated.pod(1).asks(OPEN, SERVED) == str(ALICE_SEEN)
    gated.place("g1").ip("link set eth0 down")
    gated.lead("g2")
    wait(lambda: gated.announced("g2") and gated.pod(1).asks(OPEN, SERVED, wait_s=1) == str(ALICE_SEEN))
    assert gated.pod(2).asks(OPEN, SERVED) in SITE
    assert gated.place("outside").asks(ALICE_SEEN, WEB)
    assert DEVICE not in gated.place("g1").ip("-br link")
