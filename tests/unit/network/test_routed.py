"""Addresses that follow from a node's own, and a pass over pods of the routed network."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients.netlink.routed import Found
from isthmus.clients.netlink.wire import NetlinkError
from isthmus.model.network import Attachment, Driver, Job, Node, State, User
from isthmus.model.networks.routed import Plan
from isthmus.network.drivers.routed.converge import ROUTES, RoutedConverger
from isthmus.network.drivers.routed.rules import Routed

ALICE, BOB = 1001, 1002
PLAN = Plan(IPv4Network("10.160.0.0/12"), IPv4Network("192.0.2.0/24"))
NODES = {name: Node(name, IPv4Address("192.0.2.0") + number, 1500 + number) for number, name in ((1, "c1"), (9, "c2"))}


@pytest.mark.parametrize(
    ("range", "segment", "node", "subnet"),
    [
        ("10.160.0.0/12", "192.0.2.0/24", "192.0.2.1", "10.160.16.0/20"),
        ("10.160.0.0/16", "192.0.2.0/24", "192.0.2.255", "10.160.255.0/24"),
        ("10.160.0.0/12", "172.16.0.0/16", "172.16.1.2", "10.161.2.32/28".replace("10.161.2.32", "10.160.16.32")),
        ("10.160.0.0/12", "192.0.2.0/24", "192.0.3.1", None),
        ("10.160.0.0/20", "172.16.0.0/16", "172.16.1.2", None),
    ],
)
def test_subnet_follows_from_the_nodes_place_in_the_segment(range, segment, node, subnet):
    found = Plan(IPv4Network(range), IPv4Network(segment)).subnet(IPv4Address(node))
    assert found == (IPv4Network(subnet) if subnet else None)


def test_no_two_nodes_share_an_address():
    subnets = [PLAN.subnet(address) for address in PLAN.segment]
    assert len({*subnets}) == 256
    assert all(subnet.subnet_of(PLAN.range) for subnet in subnets)


class FakeKernel:
    """Holds pods and routes; a job in `failing` cannot be made."""

    def __init__(self):
        self.pods, self.routes, self.broken, self.failing, self.calls = {}, {}, set(), set(), []

    def observe(self):
        return Found(dict(self.pods), frozenset(self.broken), dict(self.routes))

    def add(self, pod, mtu):
        self.calls.append(f"add {pod.job}")
        assert pod.job not in self.pods
        assert mtu == 1501
        if pod.job in self.failing:
            raise NetlinkError("make it", 1)
        self.pods[pod.job] = pod

    def remove(self, job):
        self.calls.append(f"remove {job}")
        self.pods.pop(job, None)
        self.broken.discard(job)

    def route(self, had, want, by):
        assert had == self.routes
        self.routes = dict(want)


class Bed:
    def __init__(self, plan=PLAN):
        self.kernel, self.published = FakeKernel(), []
        self.converger = RoutedConverger("c1", plan, self.kernel, self.published.append)

    def run(self, wanted):
        self.kernel.calls.clear()
        return self.converger.run(lambda: wanted)


@pytest.fixture
def bed():
    return Bed()


def state(*jobs, uid=ALICE, known=(), nodes=NODES):
    made = {job: Job(job, uid, "run", Driver.ROUTED, ("c1", "c2"), ()) for job in jobs}
    attachments = {(each.job, each.node): each for each in known}
    return State(nodes, {uid: User(uid, "alice", 4096)}, made, attachments=attachments)


def test_pod_is_made_with_an_address_of_the_nodes_and_published_once(bed):
    outcome = bed.run(state(7))
    assert outcome.pods[7].address == IPv4Address("10.160.16.2")
    assert outcome.pods[7].gateway == IPv4Address("10.160.16.1")
    assert bed.published == [Attachment(7, "c1", IPv4Address("10.160.16.2"))]
    assert bed.run(state(7, known=bed.published)).errors == {}
    assert (bed.kernel.calls, len(bed.published)) == ([], 1)


def test_other_nodes_subnets_are_routed_to_them(bed):
    bed.run(state())
    assert bed.kernel.routes == {IPv4Network("10.160.144.0/20"): NODES["c2"].address}
    bed.run(state(nodes={"c1": NODES["c1"]}))
    assert bed.kernel.routes == {}


def test_address_that_was_given_back_rests(bed):
    bed.run(state(7))
    bed.run(state())
    assert bed.run(state(8)).pods[8].address == IPv4Address("10.160.16.3")


def test_full_subnet_refuses_the_next_pod_and_not_the_others():
    bed = Bed(Plan(IPv4Network("10.160.0.0/20"), IPv4Network("192.0.2.0/24")))
    outcome = bed.run(state(*range(1, 15)))
    assert len(outcome.pods) == 13
    (why,) = outcome.errors.values()
    assert "no address left" in why
    assert len({pod.address for pod in outcome.pods.values()}) == 13


def test_job_of_another_user_under_the_same_id_gets_another_pod(bed):
    bed.run(state(7))
    outcome = bed.run(state(7, uid=BOB))
    assert bed.kernel.calls == ["remove 7", "add 7"]
    assert outcome.pods[7].uid == BOB


def test_failure_stays_with_its_job(bed):
    bed.kernel.failing.add(7)
    outcome = bed.run(state(7, 8))
    assert (set(outcome.pods), set(outcome.errors)) == ({8}, {"isthmus-routed-7"})
    bed.kernel.failing.clear()
    assert set(bed.run(state(7, 8)).pods) == {7, 8}


def test_what_is_half_made_goes(bed):
    bed.kernel.broken.add(9)
    bed.run(state())
    assert bed.kernel.calls == ["remove 9"]


def test_state_that_is_not_this_nodes_changes_nothing(bed):
    bed.run(state(7))
    outcome = bed.run(replace(state(), nodes={}))
    assert (set(outcome.pods), set(outcome.errors), bed.kernel.calls) == ({7}, {"state"}, [])


def test_node_outside_of_the_segment_is_reported_with_the_remedy(bed):
    moved = {**NODES, "c1": Node("c1", IPv4Address("198.51.100.1"), 1501)}
    outcome = bed.run(state(7, nodes=moved))
    assert "run playbooks/network.yml" in outcome.errors[ROUTES]
    assert outcome.pods == {}


def test_sets_keep_users_apart(bed):
    jobs = {
        7: Job(7, ALICE, "run", Driver.ROUTED, ("c1", "c2"), ()),
        8: Job(8, BOB, "run", Driver.ROUTED, ("c1", "c2"), ()),
        9: Job(9, ALICE, "run", Driver.FLANNEL, ("c2",), ()),
    }
    far = [Attachment(job, "c2", IPv4Address("10.160.144.0") + job) for job in jobs]
    known = replace(state(), jobs=jobs, attachments={(each.job, each.node): each for each in far})
    pods = bed.run(known).pods
    found = Routed(PLAN).elements(pods, [BOB], known)
    assert found["routed_pods"] == {"ir7 . 10.160.16.2", "ir8 . 10.160.16.3"}
    assert found["routed_same"] == {"ir7 . 10.160.144.7", "ir8 . 10.160.144.8"}
    assert found["routed_owned"] == {"1001 . 10.160.144.7", "1002 . 10.160.144.8"}
    assert found["routed_user_1002"] == {"10.160.16.3"}
