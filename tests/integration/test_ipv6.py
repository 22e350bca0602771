"""IPv6 of private networks: who reaches whom by it, where the filter lets them."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Network

import pytest

from isthmus.clients import nftables
from isthmus.model.network import Driver, Job
from isthmus.network.node import rules
from isthmus.network.trace.points import Finder
from isthmus.network.trace.way import OverIPv6, Probe, Verdict, trace, verdict
from tests.integration.test_rules_forged import received
from tests.integration.test_rules_walls import listening
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import (
    ADMIN,
    ALICE,
    BOB,
    EVE,
    MEMBERS,
    SERVED,
    SETTINGS,
    PodNetworks,
    sysctl,
)

pytestmark = needs_root
RANGE = IPv6Network("fd12:3456:789a::/48")
# A second pod of alice's on n1: the two have no other node between them.
NEAR = Job(3, ALICE, "near", Driver.PRIVATE, ("n1",), (IPv4Address("10.128.1.150"),))
UPLINK = "fd00:192:0:2::{}"
PMIX = 45679


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.served(stack, True, RANGE, NEAR)
        for number, name in enumerate((*MEMBERS, "outside"), 1):
            place = made.nodes.places[name]
            place.ip(f"-6 addr add {UPLINK.format(number)}/64 dev eth0 nodad")
            sysctl(place, "ipv6/conf/all/forwarding", "1")
        outside = made.nodes.places["outside"]
        outside.ip(f"-6 route add {RANGE} via {UPLINK.format(1)}")
        for name in MEMBERS:
            made.nodes.places[name].ip(f"-6 route add default via {UPLINK.format(4)}")
        yield made


def pod(world, node, number):
    return world.six(world.pod_address(node, number))


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize(("node", "number"), [("n2", 1), ("n1", 3)])
def test_pod_reaches_the_users_other_pods(world, node, number, kind):
    target = pod(world, node, number)
    assert world.pods["n1", 1].asks(target, SERVED, kind) == str(pod(world, "n1", 1))
    assert world.pods["n1", 1].pings(target)


def test_neighbours_that_the_kernel_forgot_are_found_again(world):
    for here in (world.pods["n1", 1], world.pods["n1", 3], world.pods["n2", 1]):
        here.ip("-6 neigh flush dev eth0")
    assert world.pods["n2", 1].asks(pod(world, "n1", 1), SERVED)
    assert world.pods["n1", 3].asks(pod(world, "n1", 1), SERVED)


@pytest.mark.parametrize(
    ("node", "user", "reaches"),
    [
        ("n1", ALICE, True),
        ("n3", ALICE, True),
        ("n1", 0, True),
        ("n1", ADMIN, True),
        ("n1", BOB, False),
        ("n3", EVE, False),
    ],
)
def test_host_processes_reach_pods_of_their_own_user(world, node, user, reaches):
    here = world.nodes.places[node]
    for kind in (TCP, UDP):
        seen = here.asks(pod(world, "n2", 1), SERVED, kind, user=user, wait_s=15 if reaches else 0.3)
        assert seen == (str(world.six(world.leg(node, ALICE))) if reaches else "")


@pytest.mark.parametrize(("number", "arrives"), [(2, b""), (3, b"across")])
def test_no_packet_is_handed_on_to_another_users_pod(world, number, arrives):
    """Though there would be no way back: a pod sends it to its own leg, as root in there would."""
    here, target = world.pods["n1", 1], pod(world, "n1", number)
    leg = world.six(world.leg("n1", ALICE))
    if not arrives:
        here.ip(f"-6 route replace {target} via {leg} dev eth0")
    with world.pods["n1", number].open(UDP, "::", 6001) as receiver, here.open(UDP, "::") as sender:
        sender.sendto(b"across", (str(target), 6001))
        assert received(receiver, 15 if arrives else 0.5) == arrives


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_other_users_pods_and_legs_are_not_reached(world, node):
    here = world.pods["n1", 1]
    for target in (pod(world, node, 2), world.six(world.leg(node, BOB))):
        assert here.refused(target, SERVED)
        assert not here.pings(target, wait_s=0.3)
        # Also not by a frame to its own leg, which root in a pod would send.
        here.ip(f"-6 route replace {target} via {world.six(world.leg('n1', ALICE))} dev eth0")
        assert not here.asks(target, SERVED, wait_s=0.3)
        here.ip(f"-6 route del {target}")


def test_pod_has_its_address_alone_and_no_way_out(world):
    here = world.pods["n1", 1]
    shown = here.ip("-6 -o addr show dev eth0").splitlines()
    assert [line.split()[3] for line in shown] == [f"{pod(world, 'n1', 1)}/128"]
    assert "default" not in here.ip("-6 route")
    for target in (UPLINK.format(1), UPLINK.format(4), "2001:db8::1"):
        assert here.refused(target, SERVED)


def test_nothing_leaves_a_node_though_a_pod_sends_it_there(world):
    here, leg = world.pods["n1", 1], world.six(world.leg("n1", ALICE))
    here.ip(f"-6 route add default via {leg} dev eth0")
    try:
        for target in (UPLINK.format(1), UPLINK.format(2), UPLINK.format(4)):
            assert not here.asks(target, SERVED, wait_s=0.3)
    finally:
        here.ip("-6 route del default")


def test_nobody_outside_begins(world):
    outside = world.nodes.places["outside"]
    for target in (pod(world, "n1", 1), world.six(world.leg("n1", ALICE))):
        assert not outside.asks(target, SERVED, wait_s=0.3)
    assert outside.asks(UPLINK.format(1), SERVED) == UPLINK.format(4)


def test_pod_reaches_what_listens_on_its_leg_itself_and_nothing_else(world):
    leg = world.six(world.leg("n1", ALICE))
    with world.nodes.places["n1"].serve(leg, PMIX - 1):
        for here in (world.pods["n1", 1], world.pods["n2", 1]):
            assert here.asks(leg, PMIX - 1)
            assert here.pings(leg)
            # Bound to all addresses.
            assert not here.asks(leg, SERVED, wait_s=0.3)


@pytest.mark.parametrize(("user", "answers"), [(BOB, False), (ALICE, True), (ADMIN, True), (0, True)])
def test_pod_is_answered_on_its_leg_by_root_and_its_owner_alone(world, user, answers):
    leg = world.six(world.leg("n1", ALICE))
    with listening(world.nodes.places["n1"], user, leg):
        for here in (world.pods["n1", 1], world.pods["n2", 1]):
            assert bool(here.asks(leg, PMIX, wait_s=15 if answers else 0.3)) is answers


@pytest.mark.parametrize(("user", "heard"), [(BOB, b""), (0, b"bound")])
def test_another_uid_speaks_to_nobody_by_a_leg(world, user, heard):
    send = "import socket, sys; socket.socket(10, 2).sendto(b'bound', ('ff02::1', 6000, 0, int(sys.argv[1])))"
    here = world.nodes.places["n1"]
    index = here.ip(f"-o link show il{ALICE}").split(":")[0]
    with world.pods["n1", 1].open(UDP, "::", 6000) as receiver:
        here.run(sys.executable, "-ISc", send, index, user=user, check=False)
        assert received(receiver, 15 if heard else 0.3) == heard


def test_ipv4_is_as_without(world):
    assert world.pods["n1", 1].asks(world.pod_address("n2", 1), SERVED) == str(world.pod_address("n1", 1))
    assert world.pods["n1", 1].refused(world.pod_address("n2", 2), SERVED)


def number(element):
    """Return an element with its numbers as one reads them, however nft writes them."""
    words = element.split(" . ")
    return tuple(int(word, 0) if word.startswith("0x") or word.isdecimal() else word for word in words)


def test_sets_hold_what_is_wanted(world):
    settings = replace(SETTINGS, ipv6=RANGE)
    wanted = rules.elements(world.plan("n1"), world.state, "n1", settings)
    found = world.nodes.places["n1"].do(nftables.sets, rules.TABLE)
    assert {name: set(map(number, each)) for name, each in found.items()} == {
        name: set(map(number, each)) for name, each in wanted.items()
    }
    assert len(wanted["advertises_ip6"]) == 3


@pytest.mark.parametrize("source", ["1:n1", "bob@n1", "root@n2", "outside"])
def test_trace_says_what_happens(world, source):
    settings = replace(SETTINGS, ipv6=RANGE)
    uids = {"bob": BOB, "root": 0}
    find = Finder(world.state, settings, "cl", None, uids.__getitem__, IPv4Network("10.96.0.0/16"))
    who, at, where = source.rpartition("@")
    here = world.nodes.places[where] if at or where == "outside" else world.pods["n1", 1]
    for address in (
        *(world.pod_address("n2", each) for each in (1, 2)),
        *(world.leg(each, ALICE) for each in MEMBERS[:2]),
    ):
        target = world.six(address)
        steps = trace(
            world.state,
            settings,
            find.source(source),
            find.target(str(target)),
            Probe(rules.Protocol.TCP, SERVED, OverIPv6.of(settings)),
        )
        # That it depends is on a listener's address, and these have none of their own.
        said = verdict(steps) is Verdict.PASSES
        assert bool(here.asks(target, SERVED, user=uids.get(who), wait_s=15 if said else 0.3)) is said, steps
