"""Ways past the wall that need no forged packet: a privileged port, another's leg to listen on, or to send by."""

import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from tests.integration.test_rules_forged import received, send, tap
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ADMIN, ALICE, ALLOWED, BOB, OPEN, SLURM, PodNetworks

pytestmark = needs_root
PORT, PRIVILEGED, PMIX = 7001, 700, 45679
LISTEN = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print("ready", flush=True)
while True:
    connection, _ = server.accept()
    connection.recv(99)
    connection.send(b"squatter")
    connection.close()
"""
# Connects where one may, and goes by another's interface then.
TURN = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[3].encode())
connection.send(b"x")
"""


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        made = PodNetworks.served(stack, filtered=True)
        for place in made.nodes.places.values():
            for port in (SLURM, ALLOWED):
                stack.enter_context(place.serve("", port))
        yield made


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize("port", [1, PRIVILEGED, 1023, 1024, 40000])
def test_outside_sees_no_privileged_port_of_a_pod_and_others_as_they_are(world, kind, port):
    with world.nodes.places["outside"].open(kind, OPEN, PORT) as server:
        if kind == TCP:
            server.listen()
        world.pods["n1", 1].asks(OPEN, PORT, kind, bind=f":{port}", wait_s=0.3)
        server.settimeout(15)
        _, (address, seen) = server.accept() if kind == TCP else server.recvfrom(99)
    assert address == str(world.nodes.address("n1"))
    assert seen == port if port >= 1024 else seen >= 1024


@pytest.mark.parametrize("node", ["n1", "n2", "n3"])
@pytest.mark.parametrize("port", [SLURM, ALLOWED])
def test_hosts_get_nothing_from_a_privileged_port_of_a_pod(world, node, port):
    pod, host = world.pods["n1", 1], world.nodes.address(node)
    # A port for each, for one that was used a moment ago cannot always be bound again.
    assert pod.asks(host, port, bind=f":{10000 + port + int(node[1])}")
    assert pod.refused(host, port, bind=f":{port // 10 + int(node[1])}")


@contextmanager
def listening(place, user, address):
    argv = [sys.executable, "-ISc", LISTEN, str(address), str(PMIX)]
    opened = {"stdout": subprocess.PIPE, "user": user, "group": user, "extra_groups": [], "cwd": "/"}
    with place.do(lambda: subprocess.Popen(argv, **opened)) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


@pytest.mark.parametrize(("user", "answers"), [(BOB, False), (ALICE, True), (ADMIN, True), (0, True)])
def test_pod_is_answered_on_its_leg_by_root_and_its_owner_alone(world, user, answers):
    for node in ("n1", "n2"):
        leg = world.leg(node, ALICE)
        with listening(world.nodes.places[node], user, leg):
            for pod in (world.pods["n1", 1], world.pods["n2", 1]):
                assert bool(pod.asks(leg, PMIX, wait_s=15 if answers else 0.3)) is answers


def asked_for(taps, address):
    """Return how many frames ask for an address."""
    wanted, seen = address.packed, 0
    for each in taps:
        while frame := received(each, 0.2):
            seen += frame[12:14] == b"\x08\x06" and frame[38:42] == wanted
    return seen


@pytest.mark.parametrize("device", [f"il{ALICE}", f"ix{ALICE}"])
@pytest.mark.parametrize(("user", "asks"), [(BOB, False), (0, True)])
def test_another_uid_asks_nothing_into_a_network_by_its_own_addresses(world, device, user, asks):
    nobody = world.pod_address("n1", 2) + 50
    with tap(world.pods["n1", 1]) as near, tap(world.pods["n2", 1]) as far:
        send(world.nodes.places["n1"], user, nobody, 9, b"x", device)
        assert bool(asked_for([near, far], nobody)) is asks


@pytest.mark.parametrize("device", [f"il{ALICE}", f"ix{ALICE}"])
def test_connection_to_ones_own_pod_cannot_turn_into_another_network(world, device):
    target = world.pod_address("n2", 2)
    with tap(world.pods["n1", 1]) as near, tap(world.pods["n2", 1]) as far:
        argv = (sys.executable, "-ISc", TURN, str(target), "5000", device)
        world.nodes.places["n1"].run(*argv, user=BOB, check=False)
        assert asked_for([near, far], target) == 0


def test_owner_still_sends_by_his_own_leg(world):
    with world.pods["n1", 2].open(UDP, "", PORT) as receiver:
        send(world.nodes.places["n1"], BOB, world.pod_address("n1", 2), PORT, b"own", f"il{BOB}")
        assert received(receiver, 15) == b"own"
