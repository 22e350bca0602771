"""The steps from what a node has to what it should have."""

import random
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.node_network import FLOOD, Forward, Leg, NodePlan, Pod
from isthmus.network.node import steps
from isthmus.network.node.steps import difference

ONE, TWO = IPv4Network("10.64.0.0/24"), IPv4Network("10.64.1.0/24")


def at(number):
    return IPv4Address("10.64.0.0") + number


FORWARDS = [Forward(FLOOD, at(300 + number)) for number in range(4)]
PEERS = [(at(300 + number), at(number)) for number in range(4)]
LEG = Leg(4096, 1001, at(1), (ONE,), at(300), 1450, frozenset(FORWARDS[:2]))
POD = Pod(7, 1001, 4096, at(2), at(1), (ONE,), 1450, frozenset(PEERS[:2]))
HAVE = NodePlan({4096: LEG}, {7: POD})


def plan(leg=None, pod=None, broken=()):
    """Return a plan of one leg and one pod, some fields changed."""
    return NodePlan({4096: replace(LEG, **leg or {})}, {7: replace(POD, **pod or {})}, frozenset(broken))


def test_equal_plans_need_no_step():
    assert difference(HAVE, plan()) == difference(NodePlan(), NodePlan()) == ()


def test_leg_comes_before_its_pod_and_goes_after_it():
    assert difference(NodePlan(), HAVE) == (steps.AddLeg(LEG), steps.AddPod(POD))
    assert difference(HAVE, NodePlan()) == (steps.RemovePod(POD), steps.RemoveLeg(LEG))


def test_half_made_things_go_first():
    found = NodePlan(broken=frozenset({"iv7", "il4096"}))
    assert difference(found, HAVE)[:2] == (steps.RemoveBroken("il4096"), steps.RemoveBroken("iv7"))
    assert difference(found, HAVE)[2:] == difference(NodePlan(), HAVE)


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"forwards": frozenset(FORWARDS[1:3])}, {"forwards_added": {FORWARDS[2]}, "forwards_removed": {FORWARDS[0]}}),
        ({"blocks": (ONE, TWO)}, {"blocks_added": {TWO}}),
        ({"blocks": (TWO,)}, {"blocks_added": {TWO}, "blocks_removed": {ONE}}),
        ({"mtu": 1350}, {"mtu": True}),
    ],
)
def test_leg_is_changed_by_what_differs(changed, fields):
    wanted = plan(leg=changed)
    assert difference(HAVE, wanted) == (steps.ChangeLeg(wanted.legs[4096], **fields),)


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"peers": frozenset(PEERS[1:3])}, {"peers_added": {PEERS[2]}, "peers_removed": {PEERS[0]}}),
        ({"blocks": (TWO, ONE)}, {"blocks_added": {TWO}}),
        ({"blocks": ()}, {"blocks_removed": {ONE}}),
        ({"mtu": 1350}, {"mtu": True}),
        ({"gateway": at(9)}, {"gateway": True}),
    ],
)
def test_pod_is_changed_by_what_differs(changed, fields):
    wanted = plan(pod=changed)
    assert difference(HAVE, wanted) == (steps.ChangePod(wanted.pods[7], **fields),)


def test_order_of_blocks_does_not_matter():
    assert difference(plan(leg={"blocks": (ONE, TWO)}), plan(leg={"blocks": (TWO, ONE)})) == ()


@pytest.mark.parametrize("changed", [{"address": at(9)}, {"uid": 1002}])
def test_other_pod_of_that_job_is_made_again(changed):
    wanted = plan(pod=changed)
    assert difference(HAVE, wanted) == (steps.RemovePod(POD), steps.AddPod(wanted.pods[7]))


@pytest.mark.parametrize("changed", [{"address": at(9)}, {"uid": 1002}, {"underlay": at(399)}])
def test_other_leg_is_made_again_and_live_pods_attached_to_it(changed):
    wanted = plan(leg=changed)
    leg = wanted.legs[4096]
    assert difference(HAVE, wanted) == (steps.RemoveLeg(LEG), steps.AddLeg(leg), steps.ChangePod(POD, attach=True))


def test_pod_whose_leg_vanished_is_attached_to_the_new_one():
    found = NodePlan(pods={7: POD})
    assert difference(found, HAVE) == (steps.AddLeg(LEG), steps.ChangePod(POD, attach=True))


def test_live_pod_without_a_bridge_is_attached_and_never_made_again():
    found = plan(pod={"vni": 0})
    taken = difference(found, HAVE)
    assert [type(step) for step in taken] == [steps.ChangePod]
    assert taken[0].attach


def test_pod_in_another_vni_is_made_again_there():
    leg, pod = replace(LEG, vni=5000), replace(POD, vni=5000)
    assert difference(HAVE, NodePlan({5000: leg}, {7: pod})) == (
        steps.RemovePod(POD),
        steps.RemoveLeg(LEG),
        steps.AddLeg(leg),
        steps.AddPod(pod),
    )


class Kernel:
    """A node that refuses what a real one would: a pod without its leg, a second thing of a name, a wrong change."""

    def __init__(self, found):
        self.legs, self.pods, self.broken = dict(found.legs), dict(found.pods), set(found.broken)
        self.attached = {job for job, pod in found.pods.items() if pod.vni in found.legs}

    def take(self, step):
        getattr(self, type(step).__name__)(step)

    def RemoveBroken(self, step):  # noqa: N802 -- named as the step
        self.broken.remove(step.name)

    def RemovePod(self, step):  # noqa: N802
        assert self.pods.pop(step.pod.job) == step.pod
        self.attached.discard(step.pod.job)

    def RemoveLeg(self, step):  # noqa: N802
        assert self.legs.pop(step.leg.vni) == step.leg
        self.attached -= {job for job, pod in self.pods.items() if pod.vni == step.leg.vni}

    def AddLeg(self, step):  # noqa: N802
        assert step.leg.address not in {each.address for each in (*self.legs.values(), *self.pods.values())}
        assert self.legs.setdefault(step.leg.vni, step.leg) is step.leg

    def AddPod(self, step):  # noqa: N802
        assert step.pod.address not in {pod.address for pod in self.pods.values()}
        assert step.pod.vni in self.legs
        assert self.pods.setdefault(step.pod.job, step.pod) is step.pod
        self.attached.add(step.pod.job)

    def ChangeLeg(self, step):  # noqa: N802
        had, leg = self.legs[step.leg.vni], step.leg
        assert step.forwards_removed <= had.forwards
        forwards = (had.forwards - step.forwards_removed) | step.forwards_added
        blocks = (set(had.blocks) - step.blocks_removed) | step.blocks_added
        mtu = leg.mtu if step.mtu else had.mtu
        self.legs[leg.vni] = replace(had, forwards=forwards, blocks=tuple(sorted(blocks)), mtu=mtu)

    def ChangePod(self, step):  # noqa: N802
        had, pod = self.pods[step.pod.job], step.pod
        peers = (had.peers - step.peers_removed) | step.peers_added
        blocks = (set(had.blocks) - step.blocks_removed) | step.blocks_added
        mtu, gateway = pod.mtu if step.mtu else had.mtu, pod.gateway if step.gateway else had.gateway
        self.pods[pod.job] = replace(had, peers=peers, blocks=tuple(sorted(blocks)), mtu=mtu, gateway=gateway)
        if step.attach:
            assert pod.vni in self.legs
            self.attached.add(pod.job)


def some(chance, items):
    return chance.sample(items, chance.randint(0, len(items)))


def random_plan(chance, legless=False):
    """Return a plan of some legs and pods; `legless` as found where somebody removed a bridge."""
    legs, pods = {}, {}
    for vni in some(chance, [4096, 4097, 4098]):
        address = at(1 + vni - 4096 + chance.choice([0, 10]))
        blocks, mtu = tuple(sorted(some(chance, [ONE, TWO]))), chance.choice([1450, 1350])
        legs[vni] = Leg(vni, 1001, address, blocks, at(300), mtu, frozenset(some(chance, FORWARDS)))
        for job in some(chance, range(5)):
            gateway, peers = address, frozenset(some(chance, PEERS))
            # Addresses wander between jobs, as they do when jobs end and others begin.
            pods[job] = Pod(job, 1001, vni, at(50 + (job + chance.choice([0, 5])) % 10), gateway, blocks, mtu, peers)
    if legless and legs:
        del legs[min(legs)]
    return NodePlan(legs, pods, frozenset(some(chance, ["iv90", "il5000"])) if legless else frozenset())


def test_random_steps_end_where_wanted():
    chance = random.Random(5)  # noqa: S311 -- the same each time
    for _ in range(1000):
        found, wanted = random_plan(chance, legless=chance.random() < 0.5), random_plan(chance)
        kernel = Kernel(found)
        for step in difference(found, wanted):
            kernel.take(step)
        assert (kernel.legs, kernel.pods, kernel.broken) == (wanted.legs, wanted.pods, set())
        assert kernel.attached == set(wanted.pods)
        assert difference(NodePlan(kernel.legs, kernel.pods), wanted) == ()
