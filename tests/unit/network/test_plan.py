"""What a node's kernel should hold."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Lease, Node, Ranges, State, User
from isthmus.model.node_network import FLOOD, Forward, Leg, NodePlan, Pod, mac
from isthmus.network.drivers.private.plan import Planner, desired
from isthmus.network.drivers.state import PlanError
from isthmus.network.node.nodelist import unfold
from isthmus.network.state import ipam

BLOCKS = (IPv4Network("10.64.0.0/24"),)


def at(number):
    return IPv4Address("10.64.0.0") + number


def vtep(number):
    return IPv4Address("192.0.2.0") + number


NODES = {name: Node(name, vtep(index), 1500) for index, name in enumerate(("c1", "c2", "c3", "login"), start=1)}
LEGS = {"c1": at(1), "c2": at(2), "login": at(3)}
ALICE = User(1001, "alice", 4096, BLOCKS, LEGS)
JOB = Job(7, 1001, "run", Driver.PRIVATE, ("c1", "c2"), (at(11), at(12)))
LEASE = Lease(1001, "login", 0)
STATE = State(NODES, {1001: ALICE}, {7: JOB}, {(1001, "login"): LEASE})


def ways(*pairs):
    return frozenset(Forward(FLOOD if address is None else mac(address), peer) for address, peer in pairs)


TO_C2 = ways((None, vtep(2)), (at(2), vtep(2)), (at(12), vtep(2)))
TO_LOGIN = ways((None, vtep(4)), (at(3), vtep(4)))


def test_node_with_a_pod_has_leg_pod_and_ways_to_the_others():
    leg = Leg(4096, 1001, at(1), BLOCKS, vtep(1), 1450, TO_C2 | TO_LOGIN)
    pod = Pod(7, 1001, 4096, at(11), at(1), BLOCKS, 1450, frozenset({(vtep(2), at(2))}))
    assert desired(STATE, "c1") == NodePlan({4096: leg}, {7: pod})


def test_node_with_a_lease_has_a_leg_only():
    plan = desired(STATE, "login")
    assert (list(plan.legs), dict(plan.pods)) == ([4096], {})
    assert plan.legs[4096].address == at(3)
    assert plan.legs[4096].forwards > TO_C2


def test_node_with_neither_wants_nothing():
    assert desired(STATE, "c3") == NodePlan()


def test_leg_that_nothing_here_needs_is_not_wanted():
    assert desired(replace(STATE, leases={}), "login") == NodePlan()


def test_mtu_is_the_smallest_members_less_vxlans():
    nodes = {**NODES, "c3": replace(NODES["c3"], mtu=1400)}
    plan = desired(replace(STATE, nodes=nodes), "c1")
    assert (plan.legs[4096].mtu, plan.pods[7].mtu) == (1350, 1350)


def test_peer_that_is_no_member_has_no_ways():
    nodes = {name: node for name, node in NODES.items() if name != "c2"}
    plan = desired(replace(STATE, nodes=nodes), "c1")
    assert plan.legs[4096].forwards == TO_LOGIN
    assert plan.pods[7].peers == frozenset()


def test_other_drivers_have_no_pods_here():
    jobs = {7: replace(JOB, driver=Driver.FLANNEL)}
    assert desired(replace(STATE, jobs=jobs, leases={}), "c1") == NodePlan()


def test_users_are_apart():
    bob = User(1002, "bob", 4097, (IPv4Network("10.64.1.0/24"),), {"c1": at(257), "c2": at(258)})
    job = Job(8, 1002, "run", Driver.PRIVATE, ("c1", "c2"), (at(259), at(260)))
    state = replace(STATE, users={1001: ALICE, 1002: bob}, jobs={7: JOB, 8: job})
    plan = desired(state, "c1")
    assert plan.legs[4096] == desired(STATE, "c1").legs[4096]
    assert plan.legs[4097].forwards == ways((None, vtep(2)), (at(258), vtep(2)), (at(260), vtep(2)))
    assert plan.pods[8].vni == 4097


def test_two_jobs_of_a_user_share_the_leg():
    job = Job(8, 1001, "run", Driver.PRIVATE, ("c1",), (at(13),))
    plan = desired(replace(STATE, jobs={7: JOB, 8: job}), "c1")
    assert plan.legs == desired(STATE, "c1").legs
    assert (sorted(plan.pods), plan.pods[8].peers) == ([7, 8], frozenset())
    assert Forward(mac(at(13)), vtep(1)) in desired(replace(STATE, jobs={7: JOB, 8: job}), "c2").legs[4096].forwards


def test_node_that_is_no_member_has_no_plan():
    with pytest.raises(PlanError, match="c9 is no member"):
        desired(STATE, "c9")


def test_shared_vni_has_no_plan():
    users = {1001: ALICE, 1002: User(1002, "bob", 4096)}
    with pytest.raises(PlanError, match="users 1001 and 1002 both have VNI 4096"):
        desired(replace(STATE, users=users), "c3")


@pytest.mark.parametrize("users", [{}, {1001: replace(ALICE, legs={"c2": at(2)})}])
def test_job_without_user_or_leg_is_reported(users):
    state, here, elsewhere = replace(STATE, users=users), Planner("c1"), Planner("c3")
    assert (here.plan(state), here.unconnected) == (NodePlan(), (7,))
    assert (elsewhere.plan(state), elsewhere.unconnected) == (NodePlan(), ())
    assert here.plan(STATE).pods
    assert here.unconnected == ()


CHANGES = {
    "nothing": {},
    "node": {"nodes": {**NODES, "c2": replace(NODES["c2"], address=vtep(99))}},
    "node gone": {"nodes": {name: node for name, node in NODES.items() if name != "login"}},
    "leg": {"users": {1001: replace(ALICE, legs={**LEGS, "c2": at(77)})}},
    "blocks": {"users": {1001: replace(ALICE, blocks=(*BLOCKS, IPv4Network("10.64.9.0/24")))}},
    "job": {"jobs": {7: replace(JOB, nodes=("c2", "c1"), addresses=(at(41), at(42)))}},
    "job gone": {"jobs": {}},
    "lease": {"leases": {}},
}


@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("node", ["c1", "c2"])
def test_planner_with_a_memory_plans_the_same(first, second, node):
    planner = Planner(node)
    for change in ({}, CHANGES[first], CHANGES[second], {}):
        state = replace(STATE, **change)
        assert planner.plan(state) == desired(state, node)


def test_planner_keeps_what_did_not_change():
    planner = Planner("c1")
    before = planner.plan(STATE).pods[7].peers
    assert planner.plan(replace(STATE, leases={})).pods[7].peers is before
    plan, other = planner.plan(STATE), planner.plan(replace(STATE, leases={}))
    assert other.pods[7] is plan.pods[7]
    assert other.legs[4096] is plan.legs[4096]
    changed = planner.plan(replace(STATE, users={1001: replace(ALICE, blocks=(*BLOCKS, IPv4Network("10.64.9.0/24")))}))
    assert changed.legs[4096] is not plan.legs[4096]


def test_large_job_has_a_way_to_every_pod_and_leg():
    names = unfold("c[1-4000]")
    nodes = {name: Node(name, IPv4Address("172.16.0.0") + index) for index, name in enumerate(names)}
    taken = ipam.take(State(), Ranges(IPv4Network("10.64.0.0/12")), ipam.Request(1, 1001, "alice", "run", names))
    plan = desired(State(nodes, {1001: taken.user}, {1: taken.job}), "c1")
    assert len(plan.legs[4096].forwards) == 3 * 3999
    assert len(plan.pods[1].peers) == 3999
