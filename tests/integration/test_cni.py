"""An administrator's CNI plugins with the packet filter in force: Debian's plugins, on two machines in namespaces."""

from contextlib import ExitStack

import pytest

from tests.support.networks.cni import CniNodes, job, subnet
from tests.support.networks.namespaces import TCP, UDP, needs_root
from tests.support.networks.pod_networks import ALICE, ALLOWED, BOB, DENIED, DNS, METADATA, OPEN, SERVED, SLURM

pytestmark = needs_root
PMIX, ETCD = 40000, 2379
JOBS = job(1, ALICE), job(2, BOB)


@pytest.fixture(scope="module", params=["bridge", "ptp"])
def world(request, tmp_path_factory):
    with ExitStack() as stack:
        made = CniNodes(stack, tmp_path_factory.mktemp("cni"), request.param)
        made.pods = {(name, each): pod for name in ("n1", "n2") for each, pod in made.made(name, *JOBS).items()}
        made.inside = {at: made.pod(*at) for at in made.pods}
        for (_, number), pod in made.inside.items():
            for kind in (TCP, UDP):
                stack.enter_context(pod.serve("", SERVED, kind, name=f"pod{number}".encode()))
        for name in ("n1", "n2", "outside"):
            for port in (SERVED, SLURM, ALLOWED, ETCD):
                stack.enter_context(made.nodes.places[name].serve("", port))
        yield made


def test_pod_has_an_address_of_its_nodes_range_and_its_way_is_known(world):
    pod = world.pods["n1", 1]
    place = world.nodes.places["n1"]
    assert pod.address in subnet("n1")
    assert str(pod.address) in world.inside["n1", 1].ip("-4 -o addr show eth0")
    assert f"dev {pod.end}" in place.ip(f"route get {pod.address}")
    assert str(pod.gateway) in place.ip(f"-4 -o addr show {pod.leg}")
    assert world.inside["n1", 1].ip("-6 addr") == ""
    assert "UP" in world.inside["n1", 1].ip("link show lo")


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize("to", [("n2", 1), ("n1", 2), ("n2", 2)])
def test_pod_reaches_every_pod_by_its_own_address(world, to, kind):
    """Users are not kept apart: the table of docs/admins/cni.md says so."""
    assert world.inside["n1", 1].asks(world.pods[to].address, SERVED, kind) == f"pod{to[1]}"


def test_pod_reaches_its_nodes_dns_and_pmix_and_nothing_else_there(world):
    place, pod, gateway = world.nodes.places["n1"], world.inside["n1", 1], world.pods["n1", 1].gateway
    with place.serve(gateway, DNS, UDP, name=b"dns"), place.serve(gateway, PMIX, name=b"pmix"):
        assert pod.asks(gateway, DNS, UDP) == "dns"
        assert pod.asks(gateway, PMIX) == "pmix"
        assert pod.refused(gateway, SERVED)


@pytest.mark.parametrize("to", ["n1", "n2"])
def test_pod_reaches_slurm_on_hosts_and_what_is_allowed(world, to):
    pod, host = world.inside["n1", 1], world.nodes.address(to)
    # By its own address, for slurmstepd answers there.
    assert pod.asks(host, SLURM) == str(world.pods["n1", 1].address)
    assert pod.asks(host, ALLOWED)
    for port in (SERVED, ETCD):
        assert pod.refused(host, port)


def test_pod_goes_outside_by_the_nodes_address_as_egress_says(world):
    pod = world.inside["n1", 1]
    assert pod.asks(OPEN, SERVED) == str(world.nodes.address("n1"))
    assert pod.refused(DENIED, SERVED)
    assert pod.refused(METADATA, SERVED)


def test_machine_that_is_no_member_reaches_no_pod(world):
    outside, pod = world.nodes.places["outside"], world.pods["n1", 1]
    outside.ip(f"route replace {subnet('n1')} via {world.nodes.address('n1')}")
    for kind in (TCP, UDP):
        assert outside.refused(pod.address, SERVED, kind)


def test_member_reaches_pods_of_another_node(world):
    """A srun inside a pod is answered by that node's slurmstepd."""
    assert world.nodes.places["n1"].asks(world.pods["n2", 1].address, SERVED) == "pod1"


def test_pod_with_an_address_that_is_nobodys_is_not_heard(world):
    thief, stolen = world.inside["n1", 2], subnet("n1")[200]
    thief.ip(f"addr add {stolen}/32 dev lo")
    try:
        for source, heard in ((stolen, False), (world.pods["n1", 2].address, True)):
            with world.inside["n2", 1].open(UDP, "", 7002) as receiver, thief.open(UDP, source) as sender:
                receiver.settimeout(15 if heard else 0.5)
                sender.sendto(b"x", (str(world.pods["n2", 1].address), 7002))
                if heard:
                    assert receiver.recv(9) == b"x"
                else:
                    with pytest.raises(TimeoutError):
                        receiver.recv(9)
    finally:
        thief.ip(f"addr del {stolen}/32 dev lo")
