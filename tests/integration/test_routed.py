"""The routed network with the packet filter in force: two members, and a machine of the segment that is none."""

from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from isthmus.model.network import Attachment, Driver, Job
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, ALLOWED, BOB, DENIED, DNS, EVE, METADATA, OPEN, SERVED, SLURM
from tests.support.networks.routed import ETCD, MEMBERS, PLAN, World

pytestmark = needs_root
PMIX = 40000


@pytest.fixture(scope="module")
def world():
    with ExitStack() as stack:
        yield World(stack)


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize(("where", "to"), [("n1", "n2"), ("n2", "n1"), ("n1", "n1")])
def test_pod_reaches_its_users_pods_by_their_own_addresses(world, where, to, kind):
    assert world.pods[where, 1].asks(world.address(to, 1), SERVED, kind) == "pod1"


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize(("where", "to", "job", "other"), [("n1", "n2", 1, 2), ("n1", "n1", 2, 1)])
def test_pod_reaches_no_pod_of_another_user(world, where, to, kind, job, other):
    assert world.pods[where, job].refused(world.address(to, other), SERVED, kind)


def test_packets_between_nodes_are_as_they_are(world):
    pod = world.pods["n2", 1]
    with pod.open(UDP, "", 7001) as receiver, world.pods["n1", 1].open(UDP) as sender:
        receiver.settimeout(15)
        sender.sendto(b"x", (str(world.address("n2", 1)), 7001))
        _, (source, _) = receiver.recvfrom(9)
    assert source == str(world.address("n1", 1))
    assert "mtu 1500" in pod.ip("link show eth0")


def test_pod_with_another_pods_address_is_not_heard(world):
    """Root in a pod has no right to it; but should somebody come by it, the host's end knows its pod."""
    thief, victim = world.pods["n1", 2], world.address("n1", 1)
    thief.ip(f"addr add {victim}/32 dev lo")
    try:
        for sender, heard in ((thief, False), (world.pods["n1", 1], True)):
            with world.pods["n2", 1].open(UDP, "", 7002) as receiver, sender.open(UDP, victim) as opened:
                receiver.settimeout(15 if heard else 0.5)
                opened.sendto(b"forged", (str(world.address("n2", 1)), 7002))
                if heard:
                    assert receiver.recv(9) == b"forged"
                else:
                    with pytest.raises(TimeoutError):
                        receiver.recv(9)
    finally:
        thief.ip(f"addr del {victim}/32 dev lo")


def test_machine_that_is_no_member_reaches_no_pod(world):
    outside = world.nodes.places["outside"]
    outside.ip(f"route replace {PLAN.range} via {world.nodes.address('n1')}")
    for kind in (TCP, UDP):
        assert outside.refused(world.address("n1", 1), SERVED, kind)


@pytest.mark.parametrize(
    ("user", "reaches"),
    [(0, True), (ALICE, True), (BOB, False), (EVE, False)],
)
@pytest.mark.parametrize("to", MEMBERS)
def test_host_process_reaches_its_own_users_pods_alone(world, user, reaches, to):
    host, address = world.nodes.places["n1"], world.address(to, 1)
    for kind in (TCP, UDP):
        if reaches:
            assert host.asks(address, SERVED, kind, user=user) == "pod1"
        else:
            assert host.refused(address, SERVED, kind, user=user)


def test_nobody_binds_to_a_pods_interface_to_reach_it(world):
    script = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'ir1');"
        f"s.sendto(b'x', ('{world.address('n1', 1)}', {SERVED}))"
    )
    tried = world.nodes.places["n1"].run("/usr/bin/python3", "-ISc", script, user=EVE, check=False)
    assert "PermissionError" in tried.stderr


def test_pod_reaches_its_nodes_dns_and_pmix_and_nothing_else_there(world):
    place, pod, gateway = world.nodes.places["n1"], world.pods["n1", 1], world.gateway("n1")
    with place.serve(gateway, DNS, UDP, name=b"dns"), place.serve(gateway, PMIX, name=b"pmix"):
        assert pod.asks(gateway, DNS, UDP) == "dns"
        assert pod.asks(gateway, PMIX) == "pmix"
        assert pod.refused(gateway, SERVED)


@pytest.mark.parametrize("to", [*MEMBERS])
def test_pod_reaches_slurm_on_hosts_and_what_is_allowed(world, to):
    pod, host = world.pods["n1", 1], world.nodes.address(to)
    # By its own address, for slurmstepd answers there.
    assert pod.asks(host, SLURM) == str(world.address("n1", 1))
    assert pod.asks(host, ALLOWED)
    for port in (SERVED, ETCD):
        assert pod.refused(host, port)


def test_pod_goes_outside_by_the_nodes_address_as_egress_says(world):
    pod = world.pods["n1", 1]
    assert pod.asks(OPEN, SERVED) == str(world.nodes.address("n1"))
    assert pod.refused(DENIED, SERVED)
    assert pod.refused(METADATA, SERVED)


def test_pass_changes_nothing_and_what_others_removed_is_made_again(world):
    before = world.nodes.places["n1"].ip("route"), world.observe("n1")
    world.run("n1")
    assert (world.nodes.places["n1"].ip("route"), world.observe("n1")) == before
    subnet = PLAN.subnet(world.nodes.address("n2"))
    world.nodes.places["n1"].ip(f"route del {subnet}")
    world.run("n1")
    assert world.pods["n1", 1].asks(world.address("n2", 1), SERVED) == "pod1"


def test_pod_that_ended_leaves_nothing(world):
    place, had = world.nodes.places["n2"], world.state
    uid, job = BOB, Job(3, BOB, "run", Driver.ROUTED, ("n2",), ())
    world.state = replace(had, jobs={**had.jobs, 3: job})
    made = world.run("n2").pods[3]
    assert (made.uid, made.address in PLAN.subnet(world.nodes.address("n2"))) == (uid, True)
    assert "ir3" in place.ip("link")
    world.state = had
    world.run("n2")
    assert "ir3" not in place.ip("link")
    assert str(made.address) not in place.ip("route")
    assert world.observe("n2").broken == frozenset()


def test_half_made_pod_is_made_again(world):
    had = world.state
    place = world.nodes.places["n2"]
    place.ip("link add ir4 type veth peer name other")
    assert world.observe("n2").broken == {4}
    world.state = replace(had, jobs={**had.jobs, 4: Job(4, ALICE, "run", Driver.ROUTED, ("n2",), ())})
    assert world.run("n2").pods[4].uid == ALICE
    world.state = had
    world.run("n2")
    assert Attachment(1, "n1", world.address("n1", 1)) == had.attachments[1, "n1"]
    assert IPv4Address("10.160.0.1") not in {each.address for each in had.attachments.values()}
