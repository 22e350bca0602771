"""The way in over gateways: which port leads where, and which rule lets in or refuses."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Exposure, Transport
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from isthmus.network.node import rules
from isthmus.network.trace.way import Verdict, verdict
from tests.unit.network import test_trace as known

ANYWHERE, SHUT, NEAR = map(IPv4Network, ("0.0.0.0/0", "198.51.100.0/24", "192.0.2.0/24"))
ALICES, SITE = map(IPv4Address, ("203.0.113.10", "203.0.113.20"))
WEB, TRAIN = known.ALICE.reserved["web"], known.JOBS[0].addresses[0]
GATEWAYS = Gateways(
    (Outside(ALICES, ALICES, frozenset({known.A})), Outside(SITE, SITE)),
    (
        Ingress(False, SHUT, Transport.TCP, 1, 65535),
        Ingress(True, ANYWHERE, Transport.TCP, 443, 443, known.A, "web"),
        Ingress(True, NEAR, Transport.TCP, 8000, 8100, known.A),
        Ingress(True, ANYWHERE, Transport.TCP, 25, 25, known.B),
    ),
)
SETTINGS = replace(known.SETTINGS, gateways=GATEWAYS)
OPEN = [
    Exposure(ALICES, Transport.TCP, 443, known.A, "web"),
    Exposure(ALICES, Transport.UDP, 443, known.A, "web"),
    Exposure(ALICES, Transport.TCP, 8000, known.A, "train"),
    Exposure(ALICES, Transport.TCP, 9000, known.A, "train"),
    Exposure(SITE, Transport.TCP, 25, known.B, "web"),
]


def state(gateway="login", opened=OPEN, **changes):
    """Return one where two nodes are gateways; alice's job 10 has the address of a reservation, and `web` no job."""
    alice = replace(known.ALICE, reserved={"web": WEB, "train": TRAIN, "closed": known.ALICE.blocks[0][201]})
    nodes = {name: replace(node, gateway=name in ("login", "c2")) for name, node in known.NODES.items()}
    users = {known.A: alice, known.B: replace(known.BOB, reserved={"web": known.JOBS[1].addresses[0]})}
    exposed = {each.door: each for each in opened}
    return replace(known.STATE, nodes=nodes, users=users, gateway=gateway, leases={}, exposed=exposed, **changes)


def traced(source, target, port=443, protocol=rules.Protocol.TCP, asker=None, at=None):
    return known.traced(source, target, port, protocol, asker, at or state(), SETTINGS)


@pytest.mark.parametrize(
    ("source", "target", "port", "wanted", "node", "check", "by"),
    [
        ("outside", str(ALICES), 443, Verdict.MISSING, "login", "pod", "no job has it"),
        ("outside", "web.alice", 443, Verdict.MISSING, "login", "pod", "no job has it"),
        ("192.0.2.99", str(ALICES), 8000, Verdict.PASSES, "c1", "forward", "pairs"),
        ("outside", str(SITE), 25, Verdict.PASSES, "c1", "forward", "pairs"),
        ("198.51.100.9", str(ALICES), 443, Verdict.REFUSED, "login", "exposed_forward", "network_ingress, rule 1: "),
        ("outside", str(ALICES), 8000, Verdict.REFUSED, "login", "exposed_forward", "network_ingress: no rule fits"),
        ("192.0.2.99", str(ALICES), 9000, Verdict.REFUSED, "login", "exposed_forward", "no rule fits"),
        ("outside", str(ALICES), 22, Verdict.REFUSED, "login", "input", "network_outside_addresses"),
        ("outside", str(SITE), 443, Verdict.REFUSED, "login", "input", "network_outside_addresses"),
        ("outside", str(ALICES), 0, Verdict.DEPENDS, "login", "exposed", "203.0.113.10:9000; give --port"),
        ("outside", str(SITE), 0, Verdict.DEPENDS, "login", "exposed", "tcp 203.0.113.20:25; give --port"),
        ("outside", "train.alice", 0, Verdict.DEPENDS, "", "exposed", "203.0.113.10:8000, tcp 203.0.113.10:9000; give"),
        ("outside", "train.alice", 80, Verdict.REFUSED, "", "exposed", "203.0.113.10:9000 alone"),
        ("outside", "closed.alice", 80, Verdict.REFUSED, "", "exposed", "`isthmus network expose closed PORT`"),
        # To its own address nothing comes, open port or not.
        ("outside", str(TRAIN), 8000, Verdict.REFUSED, "c1", "forward", "nobody outside begins"),
        ("outside", "10", 8000, Verdict.REFUSED, "c1", "forward", "nobody outside begins"),
        # The cluster's own do not come in by it, even to a port of their own.
        ("10", str(SITE), 25, Verdict.REFUSED, "login", "input", "network_outside_addresses"),
        ("alice@c1", str(ALICES), 8000, Verdict.REFUSED, "login", "input", "network_outside_addresses"),
        ("root@login", str(ALICES), 8000, Verdict.REFUSED, "login", "input", "network_outside_addresses"),
        # A host that is no member counts as outside.
        ("192.0.2.77", str(ALICES), 8000, Verdict.PASSES, "c1", "forward", "pairs"),
    ],
)
def test_last_step_names_what_decided(source, target, port, wanted, node, check, by):
    steps = traced(source, target, port)
    assert (verdict(steps), steps[-1].node, steps[-1].check) == (wanted, node, check)
    assert by in steps[-1].by


def test_rule_that_lets_in_is_named_and_where_the_port_leads():
    steps = traced("192.0.2.99", "train.alice", 8000)
    assert [(step.node, step.check) for step in steps][:4] == [
        ("", "exposed"),
        ("login", "exposed"),
        ("login", "exposed_forward"),
        ("login", "forwarding"),
    ]
    assert steps[0].by == "train is open at tcp 203.0.113.10:8000"
    assert steps[1].by == f"203.0.113.10 is turned to pod0 of job 10 on c1, {TRAIN}"
    assert steps[2].by.startswith("network_ingress, rule 3: ip saddr 192.0.2.0/24")


def test_pod_on_the_gateway_itself_is_reached_there():
    steps = traced("192.0.2.99", str(ALICES), 8000, at=state(jobs={10: replace(known.JOBS[0], nodes=("login", "c2"))}))
    assert (verdict(steps), steps[-1].node, steps[-1].check) == (Verdict.PASSES, "login", "pod")


def test_udp_and_icmp_have_ways_of_their_own():
    assert traced("outside", str(ALICES), 443, rules.Protocol.UDP)[-1].by.startswith("network_ingress: no rule fits")
    assert traced("outside", str(ALICES), 8000, rules.Protocol.UDP)[-1].check == "input"
    assert traced("outside", str(ALICES), 0, rules.Protocol.ICMP)[-1].check == "input"


def test_without_a_gateway_that_leads_nobody_has_the_address():
    for source in ("outside", "alice@c1"):
        last = traced(source, str(ALICES), at=state(gateway=""))[-1]
        assert (last.check, last.verdict) == ("gateway", Verdict.MISSING)


def test_gateway_without_the_users_leg_says_so():
    bare = state()
    legs = {name: leg for name, leg in known.ALICE.legs.items() if name != "login"}
    users = {**bare.users, known.A: replace(bare.users[known.A], legs=legs)}
    steps = traced("192.0.2.99", str(ALICES), 8000, at=replace(bare, users=users))
    assert (steps[-1].node, steps[-1].check, steps[-1].verdict) == ("login", "leg", Verdict.MISSING)


def test_user_sees_ports_of_his_own_alone():
    assert traced("192.0.2.99", str(ALICES), 8000, asker=known.A) == traced("192.0.2.99", str(ALICES), 8000)
    for port in (25, 0):
        seen = traced("outside", str(SITE), port, asker=known.A)
        assert seen == traced("outside", str(SITE), port, asker=known.A, at=state(opened=OPEN[:4]))
        assert seen[-1].verdict is Verdict.REFUSED
