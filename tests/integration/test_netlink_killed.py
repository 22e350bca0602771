"""A process killed at any step of a change: another one finds what is broken, and makes it whole.

A child works with batches of one request, counts its steps (a request, a mount, a kernel parameter, a namespace) and
kills itself at the one it was reported. The parent takes over once as the daemon does after a restart, by what it
observes, and once as if it had seen nothing, by doing the same again.
"""

import os
import signal
from contextlib import closing
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from itertools import count

import pytest

from isthmus.clients.netlink import namespaces as netlink_namespaces
from isthmus.clients.netlink import wire as netlink_wire
from isthmus.clients.netlink.networks import Kernel
from isthmus.model.node_network import FLOOD, Forward, Leg, NodePlan, Pod, mac
from isthmus.network.node import steps
from tests.support.networks.namespaces import Namespace, needs_root

pytestmark = needs_root

PEER = IPv4Address("192.0.2.2")
BLOCK, SECOND = IPv4Network("10.128.1.0/24"), IPv4Network("10.128.9.0/24")
LEG = Leg(
    4096, 1000, BLOCK[1], (BLOCK,), PEER - 1, 1450, frozenset({Forward(FLOOD, PEER), Forward(mac(BLOCK[2]), PEER)})
)
POD = Pod(7, 1000, 4096, BLOCK[101], BLOCK[1], (BLOCK,), 1450, frozenset({(PEER, BLOCK[2])}))
LEG_LATER = replace(LEG, blocks=(BLOCK, SECOND), forwards=frozenset({Forward(mac(BLOCK[3]), PEER)}))
POD_LATER = replace(POD, blocks=(BLOCK, SECOND), peers=frozenset({(PEER, BLOCK[3])}), mtu=1400)
EMPTY, BOTH, LATER = NodePlan(), NodePlan({4096: LEG}, {7: POD}), NodePlan({4096: LEG_LATER}, {7: POD_LATER})


def make(kernel):
    kernel.add_leg(LEG)
    kernel.add_pod(POD)


def alter(kernel):
    kernel.change_leg(LEG, LEG_LATER)
    kernel.change_pod(POD, POD_LATER)


def unmake(kernel):
    kernel.remove_pod(7)
    kernel.remove_leg(4096)


def finish(kernel, want):
    """Do what the daemon does: compare, and carry out the difference."""
    found = kernel.observe()
    for step in steps.difference(found, want):
        match step:
            case steps.RemoveBroken(name):
                kernel.remove_broken(name)
            case steps.RemovePod() | steps.RemoveLeg():
                unmake(kernel)
            case steps.AddLeg(leg):
                kernel.add_leg(leg)
            case steps.AddPod(pod):
                kernel.add_pod(pod)
            case steps.ChangeLeg(leg):
                kernel.change_leg(found.legs[leg.vni], leg)
            case steps.ChangePod(pod):
                kernel.change_pod(found.pods[pod.job], pod)


def counted(function, places, last):
    def stepping(*arguments):
        if next(places) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return stepping


def killed(act, last):
    """Do something in a child that kills itself at a step; return whether it came so far."""
    child = os.fork()
    if not child:
        places = count()
        netlink_wire._BATCH = 1
        netlink_wire.Wire._send_batch = counted(netlink_wire.Wire._send_batch, places, last)
        for name in ("_call", "sysctl"):
            setattr(netlink_namespaces, name, counted(getattr(netlink_namespaces, name), places, last))
        try:
            act(Kernel())
        finally:
            os._exit(0)
    return bool(os.WTERMSIG(os.waitpid(child, 0)[1]))


@pytest.mark.parametrize(("before", "act", "after"), [(EMPTY, make, BOTH), (BOTH, alter, LATER), (BOTH, unmake, EMPTY)])
@pytest.mark.parametrize(("restarted", "stride"), [(True, 1), (False, 4)], ids=["observes", "repeats"])
def test_change_cut_off_at_any_step_is_finished(before, act, after, restarted, stride):
    for last in count(0, stride):
        with closing(Namespace()) as node, closing(node.do(Kernel)) as kernel:
            node.do(finish, kernel, before)
            was_killed = node.do(killed, act, last)
            node.do(finish, kernel, after) if restarted else node.do(act, kernel)
            assert node.do(kernel.observe) == after, f"cut off at step {last}"
        if not was_killed:
            break
    assert last >= 4
