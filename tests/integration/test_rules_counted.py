"""Refused packets are counted by why, and reading the counters reads no set."""

import time
from contextlib import ExitStack, closing

import pytest

from isthmus.clients import nftables
from isthmus.clients.netlink import counters
from isthmus.network.dns.records import FIGURES_PORT, HOST_ADDRESS
from isthmus.network.node import rules
from isthmus.network.node.refused import Refused, Why
from tests.support.networks.namespaces import UDP, Namespace, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, DENIED, OPEN, SERVED, SETTINGS, PodNetworks

pytestmark = needs_root
TABLE = rules.TABLE
OTHERS = "table ip admin {\n counter seen { packets 3 bytes 9; }\n quota most { over 25 mbytes; }\n}\n"
OTHERS += "table inet admin {\n counter seen { packets 2 bytes 9; }\n}\n"
# Name -> who, whom he asks, and with what.
ASKED = {
    Why.HOST_TO_POD: ("n1", lambda world: world.pod_address("n1", 1), {"user": BOB}),
    Why.POD_TO_HOST: (("n1", 1), lambda world: world.nodes.address("n1"), {}),
    Why.POD_TO_OUTSIDE: (("n1", 1), lambda world: DENIED, {}),
    Why.OUTSIDE_TO_POD: ("outside", lambda world: world.pod_address("n1", 1), {}),
}


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        yield PodNetworks.served(stack, filtered=True)


def counted(world):
    place = world.nodes.places["n1"]
    return place.do(lambda: dict(Refused(lambda: counters.packets(TABLE)).packets()))


def grown(world, before):
    return {why for why, packets in counted(world).items() if packets > before[why]}


@pytest.mark.parametrize("why", ASKED)
def test_refused_packet_is_counted_as_what_it_is(world, why):
    who, whom, more = ASKED[why]
    place = world.nodes.places[who] if isinstance(who, str) else world.pods[who]
    before = counted(world)
    assert place.refused(whom(world), SERVED, **more)
    assert why in grown(world, before)
    assert not grown(world, before) - {why}


def test_packet_with_the_address_of_another_pod_is_forged(world):
    pod = world.pods["n1", 1]
    before = counted(world)
    pod.ip("addr add 10.128.1.200/32 dev eth0")
    assert pod.refused(OPEN, SERVED, bind="10.128.1.200", kind=UDP)
    assert grown(world, before) == {Why.FORGED}


def test_what_is_let_through_is_not_counted(world):
    before = counted(world)
    assert world.pods["n1", 1].asks(OPEN, SERVED)
    assert world.nodes.places["n1"].asks(world.pod_address("n1", 1), SERVED, user=ALICE)
    assert not grown(world, before)


def test_counters_are_read_quickly_beside_large_sets():
    with closing(Namespace()) as node:
        node.do(nftables.apply, rules.base(SETTINGS))
        networks = ", ".join(f"il{leg} . 10.{128 + leg // 250}.{leg % 250}.0/24" for leg in range(2000))
        peers = ", ".join(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in range(1, 60000))
        node.do(nftables.apply, f"add element inet {TABLE} networks {{ {networks} }}\n")
        node.do(nftables.apply, f"add element inet {TABLE} peers {{ {peers} }}\n")
        started = time.monotonic()
        for _ in range(10):
            assert len(node.do(counters.packets, TABLE)) == len(Why)
        assert time.monotonic() - started < 0.5


def test_counters_and_tables_of_others_are_left_alone():
    with closing(Namespace()) as node:
        node.do(nftables.apply, OTHERS)
        node.do(nftables.apply, rules.base(SETTINGS))
        assert node.do(counters.packets, TABLE) == {f"refused_{why}": 0 for why in Why}
        assert node.do(counters.packets, "admin") == {"seen": 5}


def test_no_tables_have_no_counters():
    with closing(Namespace()) as node:
        assert node.do(counters.packets, TABLE) == {}


def test_figures_of_the_dns_are_roots_alone():
    with closing(Namespace()) as node, node.serve(HOST_ADDRESS, FIGURES_PORT):
        assert node.asks(HOST_ADDRESS, FIGURES_PORT, user=BOB)
        node.do(nftables.apply, rules.base(SETTINGS))
        assert node.asks(HOST_ADDRESS, FIGURES_PORT, user=0)
        assert node.refused(HOST_ADDRESS, FIGURES_PORT, user=BOB)
