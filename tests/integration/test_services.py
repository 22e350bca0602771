"""Services from within pods, with real packets: through the filters of members, to pods on both and to the outside."""

import time
from contextlib import ExitStack, suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from isthmus.clients import nftables
from isthmus.clients.nftables import NftError
from isthmus.model.services import Answering, Endpoint, ServicePort, Transport
from isthmus.network.api.protocol import RequestError
from isthmus.network.services import rules as service_rules
from isthmus.network.services.apply import PodServices
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, BOB, DENIED, OPEN, SERVED, PodNetworks
from tests.support.wait import wait

pytestmark = needs_root
SERVICES = IPv4Network("10.96.0.0/16")
WEB = IPv4Address("10.96.0.9")
TARGET, PORT = 8080, 80
# Of a client that hears nothing.
WAITS_S = 20
KINDS = {TCP: Transport.TCP, UDP: Transport.UDP}


@pytest.fixture(scope="module")
def world():
    """Every pod says at TARGET who it is; alice has two, on n1 and n2."""
    with ExitStack() as stack:
        made = PodNetworks.served(stack, filtered=True)
        for (node, job), place in made.pods.items():
            for kind in KINDS:
                name = str(made.pod_address(node, job)).encode()
                stack.enter_context(place.serve("", TARGET, kind, name))
        yield made


@pytest.fixture
def pod(world):
    """Alice's on n1, without Services at the end."""
    place = world.pods["n1", 1]
    yield place
    place.do(nftables.apply, service_rules.removal())


@pytest.fixture
def here(world):
    return world.pod_address("n1", 1)


@pytest.fixture
def there(world):
    return world.pod_address("n2", 1)


def put(world, table, node="n1", uid=ALICE):
    """Do as the daemon of n1 does for alice's pod."""
    world.nodes.places[node].do(PodServices(SERVICES).set, "isthmus-1", uid, table)


def web(*addresses, port=TARGET, kind=TCP, affinity_s=0):
    endpoints = tuple(Endpoint(address, port) for address in addresses)
    return {ServicePort(WEB, KINDS[kind], PORT): Answering(endpoints, affinity_s)}


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_service_leads_to_another_port_of_a_pod_on_another_node(world, pod, there, kind):
    put(world, web(there, kind=kind))
    assert pod.asks(WEB, PORT, kind) == str(there)
    other = UDP if kind == TCP else TCP
    assert pod.refused(WEB, PORT, other)


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_both_endpoints_are_asked(world, pod, here, there, kind):
    put(world, web(here, there, kind=kind))
    assert {pod.asks(WEB, PORT, kind) for _ in range(24)} == {str(here), str(there)}


@pytest.mark.parametrize("kind", [TCP, UDP])
def test_pod_reaches_itself_by_its_own_service(world, pod, here, kind):
    put(world, web(here, kind=kind))
    assert pod.asks(WEB, PORT, kind) == str(here)


def test_client_comes_to_the_same_endpoint_again(world, pod, here, there):
    for affinity_s in (0, 3600):
        put(world, web(here, there, affinity_s=affinity_s))
        answers = {pod.asks(WEB, PORT) for _ in range(24)}
        assert len(answers) == (1 if affinity_s else 2)


def test_affinity_survives_a_change_of_other_services_and_ends_with_its_endpoint(world, pod, here, there):
    put(world, web(here, there, affinity_s=3600))
    first = pod.asks(WEB, PORT)
    for number in range(6):
        other = {ServicePort(WEB + 1 + number, Transport.TCP, PORT): Answering()}
        put(world, web(here, there, OPEN, affinity_s=3600) | other)
        assert pod.asks(WEB, PORT) == first
    (left,) = {here, there} - {IPv4Address(first)}
    put(world, web(left, affinity_s=3600))
    assert pod.asks(WEB, PORT) == str(left)


@pytest.mark.parametrize("affinity_s", [0, 60])
@pytest.mark.parametrize("kind", [TCP, UDP])
def test_what_is_in_force_is_read_back(world, pod, here, there, kind, affinity_s):
    table = web(here, kind=kind, affinity_s=affinity_s)
    table |= {
        ServicePort(WEB + 1, KINDS[kind], PORT): Answering(tuple(sorted((Endpoint(there, 1), Endpoint(here, 2)))))
    }
    put(world, table | {ServicePort(WEB + 2, KINDS[kind], PORT): Answering()})
    found = world.nodes.places["n1"].do(PodServices(SERVICES).table, "isthmus-1", ALICE)
    assert {at: reported.endpoints for at, reported in found.items()} == {
        at: reported.endpoints for at, reported in table.items()
    }


def test_pod_without_services_has_no_table(world, pod):
    assert world.nodes.places["n1"].do(PodServices(SERVICES).table, "isthmus-1", ALICE) is None


def test_affinity_ends_when_its_time_is_over(world, pod, here, there):
    put(world, web(here, there, affinity_s=1))
    assert pod.asks(WEB, PORT) in {str(here), str(there)}
    path = Path("/run/netns/isthmus-1")
    look = world.nodes.places["n1"].do
    wait(lambda: not any(look(nftables.timeouts, "ip", service_rules.TABLE, path).values()))
    seen = set()
    # Longer than the affinity.
    wait(lambda: seen.add(pod.asks(WEB, PORT)) or len(seen) == 2, interval_s=1.1)


@pytest.mark.parametrize("address", [WEB, WEB + 1])
@pytest.mark.parametrize("kind", [TCP, UDP])
def test_service_without_endpoints_refuses_at_once(world, pod, address, kind):
    put(world, web(kind=kind))
    with pod.open(kind) as client:
        client.settimeout(WAITS_S)
        began = time.monotonic()
        # Of UDP the kernel says so by another word: the packet does not even leave.
        with pytest.raises(ConnectionRefusedError if kind == TCP else PermissionError):
            talk(client, address)
        assert time.monotonic() - began < WAITS_S / 2


def talk(client, address):
    client.connect((str(address), PORT))
    client.send(b"?")
    client.recv(9)


def test_filters_see_where_a_service_leads(world, pod):
    """What the pod may not reach it does not reach by a Service either: other users' pods, what egress denies."""
    put(world, web(OPEN, port=SERVED))
    assert pod.asks(WEB, PORT) == str(world.nodes.address("n1"))
    for barred in (DENIED, world.pod_address("n1", 2), world.pod_address("n2", 2)):
        put(world, web(barred, port=SERVED))
        assert pod.refused(WEB, PORT)


def test_connection_lives_on_when_its_endpoint_goes(world, pod, there):
    put(world, web(there))
    with pod.open(TCP) as client:
        client.settimeout(WAITS_S)
        client.connect((str(WEB), PORT))
        put(world, web())
        client.send(b"?")
        assert client.recv(99).decode() == str(there)
    assert pod.refused(WEB, PORT)


def test_other_pods_and_the_node_have_no_rules(world, pod, there):
    put(world, web(there))
    for other in (world.pods["n1", 2], world.pods["n2", 1], world.nodes.places["n1"]):
        assert service_rules.TABLE not in other.run("nft", "list", "ruleset").stdout
        assert other.refused(WEB, PORT)


def test_other_tables_of_the_pod_stay(world, pod, there):
    pod.do(nftables.apply, "table ip mine {\nchain kept {\n}\n}")
    put(world, web(there))
    put(world, {})
    assert "chain kept" in pod.run("nft", "list", "table", "ip", "mine").stdout
    pod.do(nftables.apply, "delete table ip mine")


def test_the_largest_table_is_taken(world, pod, there):
    many = {
        ServicePort(WEB + number, Transport(("udp", "sctp")[number % 2]), PORT): Answering(
            (Endpoint(there, TARGET), Endpoint(there, 1)), 60 * (number % 2)
        )
        for number in range(999)
    }
    put(world, many | web(there))
    assert pod.asks(WEB, PORT) == str(there)


def test_strange_address_and_missing_namespace_are_refused(world, pod, there):
    put(world, web(there))
    strange = {ServicePort(OPEN, Transport.TCP, PORT): Answering((Endpoint(there, TARGET),))}
    with pytest.raises(RequestError, match=r"198\.51\.100\.7 is no address of a Service"):
        put(world, web() | strange)
    assert pod.asks(WEB, PORT) == str(there)
    place = world.nodes.places["n1"]
    for affinity_s in (0, 1):
        with pytest.raises(RequestError, match="isthmus-99 could not be made"):
            place.do(PodServices(SERVICES).set, "isthmus-99", ALICE, web(there, affinity_s=affinity_s))
    with pytest.raises(NftError), suppress(FileNotFoundError):
        place.do(nftables.timeouts, "ip", "none", Path("/run/netns/isthmus-99"))
    assert world.pods["n1", 2].refused(WEB, PORT), BOB


def test_service_answers_at_a_port_of_an_address_of_the_users_alone(world, pod, here, there):
    """As ports of nodes do; what else is at that address goes on."""
    blocks = [IPv4Network(f"{there}/32")]
    table = {ServicePort(there, Transport.TCP, 30080): Answering((Endpoint(here, TARGET),))}
    with pytest.raises(RequestError, match="nor one of the user's"):
        put(world, table)
    services = PodServices(SERVICES)
    world.nodes.places["n1"].do(services.set, "isthmus-1", ALICE, table, blocks)
    assert pod.asks(there, 30080) == str(here)
    assert pod.asks(there, TARGET) == str(there)
    assert world.nodes.places["n1"].do(services.table, "isthmus-1", ALICE) == table


def test_pod_is_left_without_services(world, pod, there):
    put(world, web(there))
    assert world.nodes.places["n1"].do(PodServices(SERVICES).table, "isthmus-1", ALICE)
    for _ in range(2):
        world.nodes.places["n1"].do(PodServices(SERVICES).clear, "isthmus-1", ALICE)
        assert world.nodes.places["n1"].do(PodServices(SERVICES).table, "isthmus-1", ALICE) is None
