"""IPv6 of legs and pods made, changed, found and removed in the kernel of one node."""

from contextlib import closing
from dataclasses import replace
from ipaddress import IPv6Network

import pytest

from isthmus.clients.netlink.networks import Kernel
from isthmus.model.networks.ipv6 import beside
from isthmus.model.node_network import UNKNOWN, Forward, NodePlan, mac
from tests.integration.test_netlink_objects import BLOCK, HERE, LEG, PEER, POD, SECOND, everything
from tests.support.networks.namespaces import Namespace, needs_root

pytestmark = needs_root

SIX, OTHER = IPv6Network("fd12:3456:789a::/96"), IPv6Network("fd00::/96")
LEG6, POD6 = replace(LEG, ipv6=SIX), replace(POD, ipv6=SIX)
BOTH = NodePlan({4096: LEG6}, {7: POD6})


@pytest.fixture
def node():
    with closing(Namespace()) as place:
        place.ip(f"addr add {HERE}/24 dev lo")
        yield place


@pytest.fixture
def kernel(node):
    with closing(node.do(Kernel)) as kernel:
        yield kernel


def make(node, kernel, leg=LEG6, pod=POD6):
    node.do(kernel.add_leg, leg)
    node.do(kernel.add_pod, pod)


def six(node):
    """All that a node and its pod have of IPv6 but what each interface has anyway."""
    shown = []
    for place in ("", "-n isthmus-7 "):
        shown += [node.ip(f"{place}-6 -o addr show scope global"), node.ip(f"{place}-6 route show table all")]
        shown.append(node.ip(f"{place}-6 neigh show nud permanent"))
    return "".join(shown)


def test_observe_finds_exactly_what_was_made(node, kernel):
    make(node, kernel)
    assert node.do(kernel.observe) == BOTH
    assert str(beside(SIX, LEG.address)) in node.ip("-6 addr show dev il4096")
    assert str(beside(SIX, POD.address)) in node.ip("-n isthmus-7 -6 addr show dev eth0")
    for place in ("", "-n isthmus-7 "):
        assert "fe80" not in node.ip(f"{place}-6 addr show scope link")


def test_neighbours_are_known_and_nobody_is_asked(node, kernel):
    make(node, kernel)
    known = node.ip("-6 neigh show dev il4096")
    for address in (BLOCK[2], POD.address):
        assert f"{beside(SIX, address)} lladdr {mac(address)} PERMANENT" in known
    assert f"{beside(SIX, POD.gateway)} dev eth0 lladdr {mac(POD.gateway)} PERMANENT" in node.ip(
        "-n isthmus-7 -6 neigh show"
    )


def test_making_again_what_is_there_keeps_it(node, kernel):
    make(node, kernel)
    before = six(node)
    make(node, kernel)
    assert (six(node), node.do(kernel.observe)) == (before, BOTH)


def test_removal_leaves_nothing(node, kernel):
    before = everything(node)
    make(node, kernel)
    with_pod = six(node)
    node.do(kernel.remove_pod, 7)
    assert str(beside(SIX, POD.address)) in with_pod
    assert str(beside(SIX, POD.address)) not in node.ip("-6 neigh show nud all")
    node.do(kernel.remove_leg, 4096)
    assert everything(node) == before


@pytest.mark.parametrize(
    "want",
    [
        LEG,
        replace(LEG6, ipv6=OTHER),
        replace(LEG6, blocks=(BLOCK, SECOND)),
        replace(LEG6, blocks=(SECOND,)),
        replace(LEG, mtu=1200),
        replace(LEG6, mtu=1300),
        replace(LEG6, forwards=frozenset({Forward(mac(BLOCK[9]), PEER)})),
    ],
)
def test_changed_leg_is_found_as_desired(node, kernel, want):
    node.do(kernel.add_leg, LEG6)
    before = node.ip("-6 neigh show nud permanent"), node.ip("-6 route show dev il4096")
    node.do(kernel.change_leg, LEG6, want)
    assert node.do(kernel.observe).legs == {4096: want}
    if want.ipv6 is None:
        assert "fd12" not in node.ip("-6 neigh show nud permanent") + node.ip("-6 route")
    node.do(kernel.change_leg, want, LEG6)
    assert node.do(kernel.observe).legs == {4096: LEG6}
    assert (node.ip("-6 neigh show nud permanent"), node.ip("-6 route show dev il4096")) == before
    assert "fe80" not in node.ip("-6 addr show dev il4096")


@pytest.mark.parametrize(
    "want",
    [
        POD,
        replace(POD6, ipv6=OTHER),
        replace(POD6, blocks=(BLOCK, SECOND)),
        replace(POD, mtu=1200),
        replace(POD6, gateway=BLOCK[3]),
    ],
)
def test_changed_pod_is_found_as_desired(node, kernel, want):
    make(node, kernel)
    before = node.ip("-n isthmus-7 -6 route show dev eth0")
    node.do(kernel.change_pod, POD6, want)
    assert node.do(kernel.observe).pods == {7: want}
    if want.ipv6 is None:
        assert node.ip("-n isthmus-7 -6 addr") == ""
    node.do(kernel.change_pod, want, POD6)
    assert node.do(kernel.observe).pods == {7: POD6}
    assert node.ip("-n isthmus-7 -6 route show dev eth0") == before
    shown = node.ip("-n isthmus-7 -6 addr")
    assert "fe80" not in shown and "::1/128" in shown


@pytest.mark.parametrize(
    "command",
    [
        "-6 addr flush dev il4096",
        "-6 addr add fd12:3456:789a::99/128 dev il4096 nodad",
        "-6 route del fd12:3456:789a::a80:100/120 dev il4096",
        "-6 route add 2001:db8::/64 dev il4096 proto static",
    ],
)
def test_leg_that_lost_or_got_something_is_mended_in_place(node, kernel, command):
    make(node, kernel)
    before = six(node)
    node.ip(command)
    found = node.do(kernel.observe)
    assert found.legs[4096].ipv6 in (UNKNOWN, None) and not found.broken
    node.do(kernel.change_leg, found.legs[4096], LEG6)
    # It forgot its neighbours; what changes a leg attaches its pods again.
    node.do(kernel.change_pod, replace(POD6, vni=0), POD6)
    assert node.do(kernel.observe) == BOTH
    assert sorted(six(node).splitlines()) == sorted(before.splitlines())


def test_pod_without_its_routes_is_mended_in_place(node, kernel):
    make(node, kernel)
    node.ip("-n isthmus-7 -6 route flush proto static")
    found = node.do(kernel.observe).pods[7]
    assert found == replace(POD, ipv6=UNKNOWN)
    node.do(kernel.change_pod, found, POD6)
    assert node.do(kernel.observe) == BOTH


def test_pod_and_leg_without_ipv6_have_nothing_of_it(node, kernel):
    make(node, kernel, LEG, POD)
    assert node.do(kernel.observe) == NodePlan({4096: LEG}, {7: POD})
    assert node.ip("-n isthmus-7 -6 addr") == ""
    assert node.ip("-6 addr show dev il4096") == ""
    assert node.ip("-6 neigh show nud all dev il4096") == ""
