"""The way to an address of Services, from a pod, a host and outside."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Node, State, User
from isthmus.network.node import rules
from isthmus.network.node.rules import Protocol
from isthmus.network.trace.points import Finder, visible
from isthmus.network.trace.services import PodTable, ToService
from isthmus.network.trace.way import Probe, Verdict, verdict
from tests.support.pods.services import answering, place

A, B = 1001, 1002
NODES = {name: Node(name, IPv4Address("192.0.2.0") + index) for index, name in enumerate(("c1", "c2"), 1)}
ALICE, BOB = (
    User(uid, name, uid, (block := IPv4Network(f"10.64.{uid - 1000}.0/24"),), {"c1": block[1], "c2": block[2]}, {})
    for uid, name in ((A, "alice"), (B, "bob"))
)
JOBS = [
    Job(number, user.uid, "train", Driver.PRIVATE, ("c1", "c2"), (user.blocks[0][number], user.blocks[0][number + 1]))
    for number, user in ((10, ALICE), (20, BOB))
]
STATE = State(NODES, {A: ALICE, B: BOB}, {job.id: job for job in JOBS})
SETTINGS = rules.Settings(IPv4Network("10.64.0.0/16"))
MANY = answering(*(f"10.64.1.11:{port}" for port in range(8000, 8010)))
TABLE = {
    place(): answering("10.64.1.11:8080"),
    place(port=443): answering("10.64.1.11:8443", "10.64.1.10:8443"),
    place("10.96.0.10"): answering("10.64.1.10:80"),
    place("10.96.0.11"): answering("10.64.2.21:80"),
    place("10.96.0.12"): MANY,
    place("10.96.0.13", 6817): answering("192.0.2.2:22"),
}
KNOWN = PodTable(is_known=True, table=TABLE)
BARE = PodTable(is_known=True)
UNKNOWN = PodTable(is_known=False)


def traced(source, target, known, port=80, protocol=Protocol.TCP, asker=A):
    state = visible(STATE, asker)
    find = Finder(state, SETTINGS, "cl", asker, {"root": 0, "alice": A}.__getitem__, IPv4Network("10.96.0.0/16"))
    way = ToService(state, SETTINGS, lambda address: find.target(str(address)))
    return way.trace(find.source(source), find.target(target), Probe(protocol, port), known)


CASES = {
    "turned": (KNOWN, "10.96.0.9", 80, Verdict.PASSES, "10.96.0.9 tcp 80 is turned to 10.64.1.11:8080"),
    "one of two": (KNOWN, "10.96.0.9", 443, Verdict.PASSES, "one of 10.64.1.11:8443, 10.64.1.10:8443, here to"),
    "one of many": (KNOWN, "10.96.0.12", 80, Verdict.PASSES, "10.64.1.11:8007 and 2 more, here to the first"),
    "other port": (KNOWN, "10.96.0.9", 81, Verdict.REFUSED, "has endpoints for tcp 80, tcp 443 alone"),
    "no Service": (KNOWN, "10.96.0.99", 80, Verdict.REFUSED, "no Service with an endpoint is at 10.96.0.99"),
    "any port": (KNOWN, "10.96.0.9", 0, Verdict.DEPENDS, "tcp 80 to 10.64.1.11:8080; tcp 443 to one of"),
    "of another user": (KNOWN, "10.96.0.11", 80, Verdict.REFUSED, "is turned to 10.64.2.21:80"),
    "a pod elsewhere": (UNKNOWN, "10.96.0.9", 80, Verdict.DEPENDS, "on c1, `isthmus network trace` shows where to"),
    "a pod without Services": (BARE, "10.96.0.9", 80, Verdict.PASSES, "an address as any other"),
}


@pytest.mark.parametrize("known, target, port, wanted, by", CASES.values(), ids=CASES)
def test_pods_own_rules_are_reported_first(known, target, port, wanted, by):
    steps = traced("10", target, known, port)
    assert (steps[0].node, steps[0].check, verdict(steps)) == ("c1", "services", wanted)
    assert by in steps[0].by


def test_way_goes_on_to_the_endpoint():
    last = traced("10", "10.96.0.9", KNOWN)[-1]
    assert (last.node, last.check, last.verdict) == ("c2", "forward", Verdict.PASSES)
    last = traced("10", "10.96.0.13", KNOWN, 6817)[-1]
    assert (last.node, last.check, last.verdict) == ("c2", "from_leg", Verdict.REFUSED)
    last = traced("10", "10.96.0.11", KNOWN)[-1]
    assert (last.check, last.verdict) == ("from_pods", Verdict.REFUSED)


def test_pod_that_answers_itself_is_reported():
    steps = traced("10", "10.96.0.10", KNOWN)
    assert [step.by for step in steps[1:]] == ["the pod itself; nothing is in its way"]


@pytest.mark.parametrize(
    ("protocol", "port", "by"),
    [
        (Protocol.UDP, 80, "has endpoints for tcp 80, tcp 443 alone"),
        (Protocol.UDP, 0, "has endpoints for tcp 80, tcp 443 alone"),
        (Protocol.ICMP, 0, "has endpoints for tcp 80, tcp 443 alone"),
    ],
)
def test_other_protocols_are_refused(protocol, port, by):
    (step,) = traced("10", "10.96.0.9", KNOWN, port, protocol)
    assert step.verdict is Verdict.REFUSED
    assert by in step.by


@pytest.mark.parametrize(
    ("source", "wanted", "by"),
    [
        ("c1", Verdict.MISSING, "within pods alone; from a host, use a pod's address or kubectl"),
        ("outside", Verdict.MISSING, "no way from outside"),
    ],
)
def test_services_are_within_pods(source, wanted, by):
    (step,) = traced(source, "10.96.0.9", UNKNOWN)
    assert step.verdict is wanted
    assert by in step.by


def test_address_is_called_what_it_is():
    find = Finder(STATE, SETTINGS, "cl", A, {}.__getitem__, IPv4Network("10.96.0.0/16"))
    assert "of Services" in find.target("10.96.0.9").text
    assert "outside" in find.target("10.97.0.9").text
