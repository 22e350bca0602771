"""One account cannot fill the table of connections, whatever it sends from."""

import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.model.subids import Range
from isthmus.network.node.rules_bounds import Bounds
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, OPEN, SERVED, SETTINGS, PodNetworks

pytestmark = needs_root
MOST = 100
# Entries of others: ARP has none, but what tests asked before may still be there.
OTHERS = 40
QUESTIONS = 20
COUNT = Path("/proc/sys/net/netfilter/nf_conntrack_count")
RANGES = [Range("bob", 300000, 65536)]
FLOOD = """
import socket, sys
for port in range(int(sys.argv[2])):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.sendto(b"x", (sys.argv[1], 10000 + port))
        except PermissionError:
            pass
"""


@pytest.fixture
def world():
    with ExitStack() as stack:
        made = PodNetworks.served(stack, filtered=False)
        bounds = Bounds(flows=MOST, rate=50, dns=QUESTIONS)
        for name in ("n1", "n2"):
            made.filter(name, replace(SETTINGS, bounds=bounds), RANGES)
        yield made


def flood(place, user=None, count=500):
    place.run(sys.executable, "-ISc", FLOOD, str(OPEN), str(count), user=user)


def entries(world):
    return int(world.nodes.places["n1"].do(COUNT.read_text))


def test_flood_of_a_pod_stops_at_the_bound_and_others_go_on(world):
    bobs, n1 = world.pods["n1", 2], world.nodes.places["n1"]
    flood(bobs)
    assert MOST / 2 < entries(world) <= MOST + OTHERS
    assert bobs.refused(OPEN, SERVED)
    assert world.pods["n1", 1].asks(OPEN, SERVED)
    # What a user's pods used up is not what his processes on the host have.
    for user in (0, ALICE, BOB):
        assert n1.asks(OPEN, SERVED, user=user)


def test_flood_of_a_host_process_stops_at_the_bound_and_others_go_on(world):
    n1 = world.nodes.places["n1"]
    flood(n1, BOB)
    assert MOST / 2 < entries(world) <= MOST + OTHERS
    assert n1.refused(OPEN, SERVED, user=BOB)
    for user in (0, ALICE):
        assert n1.asks(OPEN, SERVED, user=user)
    for job in (1, 2):
        assert world.pods["n1", job].asks(OPEN, SERVED)


def test_flood_by_subordinate_ids_is_one_accounts(world):
    for user in range(300001, 300006):
        flood(world.nodes.places["n1"], user, 100)
    assert entries(world) <= MOST + OTHERS
    assert world.nodes.places["n1"].refused(OPEN, SERVED, user=365535)
    assert world.nodes.places["n1"].asks(OPEN, SERVED, user=365536)


def test_what_is_open_outlives_a_flood(world):
    pod = world.pods["n1", 2]
    with world.nodes.places["outside"].open(TCP, OPEN, 5998) as server, pod.open(TCP) as client:
        server.listen()
        client.connect((str(OPEN), 5998))
        connection, _ = server.accept()
        flood(pod)
        with connection:
            for sender, receiver in ((client, connection), (connection, client)):
                receiver.settimeout(15)
                sender.send(b"still here")
                assert receiver.recv(99) == b"still here"


def test_pods_of_a_user_reach_one_another_beside_a_flood(world):
    flood(world.pods["n2", 2])
    assert world.pods["n2", 2].asks(world.pod_address("n1", 2), SERVED)


ASK = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    for _ in range(int(sys.argv[2])):
        try:
            one.sendto(b"x", (sys.argv[1], 53))
        except PermissionError:
            pass
"""


@pytest.mark.parametrize("asks", ["pod", "process", "subordinate"])
def test_questions_to_the_dns_stop_at_the_bound_and_others_are_heard(world, asks):
    n1, leg = world.nodes.places["n1"], world.leg("n1", BOB)
    place, user = {"pod": (world.pods["n1", 2], None), "process": (n1, BOB), "subordinate": (n1, 300001)}[asks]
    target = leg if asks == "pod" else "127.0.0.153"
    with n1.open(UDP, target, 53) as server:
        server.settimeout(0.5)
        place.run(sys.executable, "-ISc", ASK, str(target), "500", user=user)
        assert QUESTIONS <= heard(server) <= 3 * QUESTIONS
        n1.run(sys.executable, "-ISc", ASK, str(target), "3", user=ALICE if asks != "pod" else 0)
        assert heard(server) == 3


def heard(server):
    """Return how many packets have come."""
    count = 0
    with suppress(TimeoutError):
        while server.recv(9):
            count += 1
    return count
