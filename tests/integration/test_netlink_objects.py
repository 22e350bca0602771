"""Legs and pods made, changed, found and removed in the kernel of one node."""

import os
from contextlib import closing
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.netlink.networks import Kernel, NotThereError, Underlay
from isthmus.clients.netlink.wire import AlreadyThereError, Wire
from isthmus.model.node_network import FLOOD, Forward, Leg, NodePlan, Pod, mac
from tests.support.networks.namespaces import Namespace, needs_root

pytestmark = needs_root

HERE, PEER, THIRD = map(IPv4Address, ("192.0.2.1", "192.0.2.2", "192.0.2.3"))
BLOCK, SECOND = IPv4Network("10.128.1.0/24"), IPv4Network("10.128.9.0/24")
FORWARDS = frozenset({Forward(FLOOD, PEER), Forward(FLOOD, THIRD), Forward(mac(BLOCK[2]), PEER)})
LEG = Leg(4096, 1000, BLOCK[1], (BLOCK,), HERE, 1450, FORWARDS)
POD = Pod(7, 1000, 4096, BLOCK[101], BLOCK[1], (BLOCK,), 1450, frozenset({(PEER, BLOCK[2])}))
BOTH = NodePlan({4096: LEG}, {7: POD})


@pytest.fixture
def node():
    with closing(Namespace()) as place:
        place.ip(f"addr add {HERE}/24 dev lo")
        yield place


@pytest.fixture
def kernel(node):
    with closing(node.do(Kernel)) as kernel:
        yield kernel


@pytest.fixture
def sent(monkeypatch):
    """All requests, in their order."""
    requests, send = [], Wire.send
    monkeypatch.setattr(Wire, "send", lambda wire, *some: (requests.extend(some), send(wire, *some))[1])
    return requests


@pytest.fixture
def made(node, kernel):
    node.do(kernel.add_leg, LEG)
    node.do(kernel.add_pod, POD)


def everything(node):
    """All that a node's kernel and its namespaces hold."""
    kinds = ("link", "addr", "route show table all", "neigh", "-6 addr")
    links = [line.split(" mtu")[0] for line in node.ip("-o link").splitlines()]
    return [*links, *(node.ip(f"-o {kind}") for kind in kinds[1:]), node.run("bridge", "fdb").stdout, node.ip("netns")]


def test_observe_finds_nothing_on_a_node_without_pods(node, kernel):
    node.ip("link add podman1 type bridge")
    node.ip("netns add cni-1")
    assert node.do(kernel.observe) == NodePlan()


def test_observe_finds_exactly_what_was_made(node, kernel, made):
    assert node.do(kernel.observe) == BOTH


def test_alias_that_says_an_object_is_whole_is_set_last(node, kernel, sent):
    for make, wanted in ((kernel.add_leg, LEG), (kernel.add_pod, POD)):
        sent.clear()
        node.do(make, wanted)
        assert [b'{"uid":1000}' in request.body for request in sent] == [False] * (len(sent) - 1) + [True]


def test_making_again_what_is_there_keeps_it(node, kernel, made):
    before = node.ip("-o link show il4096"), node.ip("-o link show iv7")
    node.do(kernel.add_leg, LEG)
    node.do(kernel.add_pod, POD)
    assert (node.ip("-o link show il4096"), node.ip("-o link show iv7")) == before
    assert node.do(kernel.observe) == BOTH


def test_removal_leaves_nothing(node, kernel):
    before = everything(node)
    node.do(kernel.add_leg, LEG)
    node.do(kernel.add_pod, POD)
    assert everything(node) != before
    node.do(kernel.remove_pod, 7)
    node.do(kernel.remove_leg, 4096)
    assert everything(node) == before


def test_pod_removed_from_a_leg_that_stays_leaves_nothing(node, kernel):
    node.do(kernel.add_leg, LEG)
    before = everything(node)
    node.do(kernel.add_pod, POD)
    node.do(kernel.remove_pod, 7)
    assert everything(node) == before


def test_removing_what_is_gone_succeeds(node, kernel):
    node.do(kernel.remove_pod, 7)
    node.do(kernel.remove_leg, 4096)
    for name in ("il1", "ix1", "iv1", "isthmus-1"):
        node.do(kernel.remove_broken, name)


@pytest.mark.parametrize(
    "want",
    [
        replace(LEG, blocks=(BLOCK, SECOND)),
        replace(LEG, blocks=(SECOND,)),
        replace(LEG, mtu=8950),
        replace(LEG, forwards=frozenset()),
        replace(LEG, forwards=FORWARDS | {Forward(mac(BLOCK[3]), THIRD)}),
        replace(LEG, forwards=frozenset({Forward(FLOOD, THIRD), Forward(mac(BLOCK[2]), THIRD)})),
    ],
)
def test_changed_leg_is_found_as_desired(node, kernel, want):
    node.do(kernel.add_leg, LEG)
    node.do(kernel.change_leg, LEG, want)
    assert node.do(kernel.observe).legs == {4096: want}
    node.do(kernel.change_leg, LEG, want)
    node.do(kernel.change_leg, want, LEG)
    assert node.do(kernel.observe).legs == {4096: LEG}


@pytest.mark.parametrize(
    "want",
    [
        replace(POD, blocks=(BLOCK, SECOND)),
        replace(POD, mtu=1400),
        replace(POD, peers=frozenset()),
        replace(POD, peers=frozenset({(PEER, BLOCK[9]), (THIRD, BLOCK[3])})),
        replace(POD, gateway=BLOCK[3]),
    ],
)
def test_changed_pod_is_found_as_desired(node, kernel, made, want):
    node.do(kernel.change_pod, POD, want)
    assert node.do(kernel.observe).pods == {7: want}
    node.do(kernel.change_pod, POD, want)
    node.do(kernel.change_pod, want, POD)
    assert node.do(kernel.observe).pods == {7: POD}


def test_another_users_leg_or_pod_is_no_change(node, kernel, made):
    with pytest.raises(ValueError, match="il4096"):
        node.do(kernel.change_leg, LEG, replace(LEG, uid=1001))
    with pytest.raises(ValueError, match="job 7"):
        node.do(kernel.change_pod, POD, replace(POD, address=BLOCK[102]))


def test_leg_of_another_user_is_made_again(node, kernel):
    node.do(kernel.add_leg, LEG)
    other = replace(LEG, uid=1001, address=BLOCK[5])
    node.do(kernel.add_leg, other)
    assert node.do(kernel.observe).legs == {4096: other}


def test_pod_that_lost_its_leg_is_attached_to_the_new_one(node, kernel, made):
    node.do(kernel.remove_leg, 4096)
    lost = node.do(kernel.observe)
    assert lost == NodePlan({}, {7: replace(POD, vni=0)})
    node.do(kernel.add_leg, LEG)
    node.do(kernel.change_pod, lost.pods[7], POD)
    assert node.do(kernel.observe) == BOTH


@pytest.mark.parametrize(
    ("command", "broken"),
    [
        ("link set il4096 alias {}", {"il4096", "ix4096"}),
        ("link del ix4096", {"il4096"}),
        ("link del il4096", {"ix4096"}),
        ("link set iv7 alias {}", {"iv7", "isthmus-7"}),
        ("link del iv7", {"isthmus-7"}),
        ("netns del isthmus-7", {"iv7"}),
        ("-n isthmus-7 addr flush dev eth0", {"iv7", "isthmus-7"}),
        ("link add il9 type bridge", {"il9"}),
    ],
)
def test_half_made_objects_are_found_and_removed(node, kernel, made, command, broken):
    # Else the kernel removes what was in a deleted namespace a moment later, the pod's interface with it.
    kept = node.do(os.open, "/run/netns/isthmus-7", os.O_RDONLY)
    try:
        node.ip(command)
        found = node.do(kernel.observe)
    finally:
        os.close(kept)
    assert broken == found.broken
    for name in found.broken:
        node.do(kernel.remove_broken, name)
    assert not node.do(kernel.observe).broken
    node.do(kernel.add_leg, LEG)
    node.do(kernel.add_pod, POD)
    node.do(kernel.change_pod, node.do(kernel.observe).pods[7], POD)
    assert node.do(kernel.observe) == BOTH


def test_names_that_are_not_ours_are_never_removed(node, kernel):
    for name in ("eth0", "ilx", "isthmus-", "il1x"):
        with pytest.raises(ValueError, match=name):
            node.do(kernel.remove_broken, name)


def test_pod_without_its_leg_is_an_error_with_a_name(node, kernel):
    with pytest.raises(NotThereError, match="il4096"):
        node.do(kernel.add_pod, POD)
    assert node.do(kernel.observe) == NodePlan()


def test_refused_request_reports_what_and_why(node, kernel):
    node.ip("link add ix9 type vxlan id 4096 local 192.0.2.1 dstport 4789")
    with pytest.raises(AlreadyThereError, match="make vxlan ix4096: File exists"):
        node.do(kernel.add_leg, LEG)
    assert "il4096" in node.do(kernel.observe).broken


def test_underlay_is_the_interface_with_the_address(node, kernel):
    node.ip("link set lo mtu 9000")
    assert node.do(kernel.underlay, HERE) == Underlay("lo", 9000)
    with pytest.raises(NotThereError, match=r"192\.0\.2\.9"):
        node.do(kernel.underlay, IPv4Address("192.0.2.9"))
