"""The way between two points, and which rule decides."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Job, Lease, Node, State, User
from isthmus.network.drivers.flannel.rules import Flannel
from isthmus.network.gateways.settings import Gateways
from isthmus.network.node import rules
from isthmus.network.trace.points import Finder, PointError, visible
from isthmus.network.trace.way import Probe, Verdict, failures, trace, verdict

A, B = 1001, 1002
NODES = {name: Node(name, IPv4Address("192.0.2.0") + index) for index, name in enumerate(("c1", "c2", "login"), 1)}
ALICE, BOB = (
    User(
        uid,
        name,
        uid,
        (block := IPv4Network(f"10.64.{uid - 1000}.0/24"),),
        {"c1": block[1], "c2": block[2], "login": block[3]},
        {"web": block[200]},
    )
    for uid, name in ((A, "alice"), (B, "bob"))
)
JOBS = [
    Job(number, user.uid, name, driver, ("c1", "c2"), (user.blocks[0][number], user.blocks[0][number + 1]))
    for number, user, name, driver in (
        (10, ALICE, "train", Driver.PRIVATE),
        (20, BOB, "theirs", Driver.PRIVATE),
        (30, ALICE, "flat", Driver.FLANNEL),
    )
]
STATE = State(NODES, {A: ALICE, B: BOB}, {job.id: job for job in JOBS}, {(A, "login"): Lease(A, "login", 0)})
SETTINGS = rules.Settings(
    IPv4Network("10.64.0.0/16"),
    frozenset({1009}),
    services=(rules.Service(rules.Protocol.TCP, rules.Ports(5000, 5000)),),
    hosts=(IPv4Network("192.0.2.77/32"),),
    egress=(rules.Egress(rules.Action.DENY, IPv4Network("198.51.100.0/24")),),
)
SERVICES = IPv4Network("10.96.0.0/16")
UIDS = {"root": 0, "alice": A, "bob": B, "admin": 1009}


def traced(source, target, port=80, protocol=rules.Protocol.TCP, asker=None, state=STATE, settings=SETTINGS):
    finder = Finder(visible(state, asker), settings, "cl", asker, UIDS.__getitem__, SERVICES)
    return trace(finder.state, settings, finder.source(source), finder.target(target), Probe(protocol, port))


@pytest.mark.parametrize(
    ("source", "target", "port", "wanted", "check", "by"),
    [
        ("10", "10:c2", 80, Verdict.PASSES, "forward", "pairs"),
        ("10", "20", 80, Verdict.REFUSED, "from_pods", "pods and legs of another user"),
        ("10", "20:c2", 80, Verdict.REFUSED, "from_pods", "pods and legs of another user"),
        ("10", "10.64.1.1", 53, Verdict.PASSES, "own_leg", "dport 53"),
        ("10", "10.64.1.1", 22, Verdict.REFUSED, "own_leg", "bound to its very address"),
        ("10", "10.64.1.1", 4000, Verdict.DEPENDS, "own_leg", "socket wildcard 0"),
        ("10", "login", 6817, Verdict.PASSES, "input", "no rule forbids it"),
        ("10", "login", 22, Verdict.REFUSED, "from_pods", "network_host_ports"),
        ("10", "c2", 22, Verdict.REFUSED, "from_leg", "network_host_ports"),
        ("10", "c2", 5000, Verdict.PASSES, "host_services", "network_host_ports"),
        ("10", "login", 0, Verdict.DEPENDS, "input", "no rule forbids it"),
        ("10", "192.0.2.77", 22, Verdict.REFUSED, "from_pods", "network_host_ports"),
        ("10", "169.254.169.254", 80, Verdict.REFUSED, "from_pods", "metadata"),
        ("10", "198.51.100.9", 80, Verdict.REFUSED, "from_pods", "network_egress:"),
        ("10", "outside", 80, Verdict.PASSES, "from_pods", "network_egress_default"),
        ("10", "web.alice", 80, Verdict.MISSING, "pod", "reserved as web; no job has it"),
        ("alice@c1", "10:c2", 80, Verdict.PASSES, "forward", "pairs"),
        ("alice@login", "10:c2", 80, Verdict.PASSES, "forward", "pairs"),
        ("bob@login", "20", 80, Verdict.MISSING, "leg", "isthmus network join"),
        ("bob@c1", "10", 80, Verdict.REFUSED, "to_pods", "its own uid"),
        ("admin@c1", "10", 80, Verdict.PASSES, "pod", "isthmus-10"),
        ("root@login", "20", 80, Verdict.MISSING, "leg", "no leg of the network"),
        ("alice@c1", "login", 22, Verdict.PASSES, "input", "no rule forbids it"),
        ("alice@c1", "198.51.100.9", 80, Verdict.PASSES, "output", "no rule forbids it"),
        ("outside", "10", 80, Verdict.REFUSED, "forward", "nobody outside begins"),
        ("outside", "10.64.1.1", 80, Verdict.REFUSED, "input", "nobody outside begins"),
        ("outside", "c1", 22, Verdict.PASSES, "input", "no rule forbids it"),
        ("outside", "10.64.9.9", 22, Verdict.MISSING, "route", "no way from outside"),
    ],
)
def test_last_step_names_what_decided(source, target, port, wanted, check, by):
    steps = traced(source, target, port)
    assert (verdict(steps), steps[-1].check) == (wanted, check)
    assert by in steps[-1].by


def test_way_to_another_node_is_reported_in_order():
    steps = traced("10", "10:c2")
    assert [(step.node, step.check) for step in steps] == [
        ("c1", "leg"),
        ("c1", "pod"),
        ("c1", "prerouting"),
        ("c1", "forwarding"),
        ("c1", "output"),
        ("c2", "input"),
        ("c2", "leg"),
        ("c2", "pod"),
        ("c2", "forward"),
    ]


def test_pod_does_not_reach_flannels_network():
    settings = replace(SETTINGS, shared=(Flannel(IPv4Network("10.32.0.0/12")),))
    steps = traced("10", "10.32.1.1", settings=settings)
    assert (steps[-1].check, steps[-1].verdict) == ("flannel_forward", Verdict.REFUSED)


def test_udp_and_icmp_have_rules_of_their_own():
    assert verdict(traced("10", "10.64.1.1", 4000, rules.Protocol.UDP)) is Verdict.REFUSED
    assert verdict(traced("10", "10.64.1.1", 0, rules.Protocol.ICMP)) is Verdict.PASSES
    assert verdict(traced("10", "c2", 0, rules.Protocol.ICMP)) is Verdict.REFUSED


def without(state, **changes):
    return replace(state, users={**state.users, A: replace(ALICE, **changes)})


@pytest.mark.parametrize(
    ("state", "target", "node", "check"),
    [
        (replace(STATE, nodes={name: NODES[name] for name in ("c1", "login")}), "10:c2", "c2", "member"),
        (without(STATE, legs={"c1": ALICE.legs["c1"]}), "10:c2", "c1", "forwarding"),
        (without(STATE, legs={"c2": ALICE.legs["c2"]}), "10:c2", "c1", "leg"),
    ],
)
def test_what_lacks_ends_the_way(state, target, node, check):
    steps = traced("10", target, state=state)
    assert (steps[-1].verdict, steps[-1].node, steps[-1].check) == (Verdict.MISSING, node, check)


@pytest.mark.parametrize("word", ["10", "10:c1", "10:pod0", "10.64.1.10", "pod0.10", "train", "pod0.10.alice.cl"])
def test_words_for_a_pod(word):
    finder = Finder(visible(STATE, A), SETTINGS, "cl", A, UIDS.__getitem__, SERVICES)
    assert finder.source(word).address == IPv4Address("10.64.1.10")


@pytest.mark.parametrize("word", ["20", "20:c2", "99", "theirs", "theirs.bob.cl", "pod0.20.bob", "nonsense"])
def test_job_of_another_user_is_reported_apart_from_none_in_no_way(word):
    for end in ({"source": word, "target": "10"}, {"source": "10", "target": word}):
        with pytest.raises(PointError) as reported:
            traced(**end, asker=A)
        assert "yours" in str(reported.value)
        assert "bob" not in str(reported.value).replace(word, "")


@pytest.mark.parametrize("target", ["10.64.2.20", "10.64.2.1", "10.64.2.200", "10.64.77.7"])
def test_address_of_another_user_is_like_one_of_nobody(target):
    for source in ("10", "c1"):
        reported = traced(source, target, asker=A)
        assert reported == traced(source, target, asker=A, state=visible(STATE, A))
        assert verdict(reported) is Verdict.REFUSED


@pytest.mark.parametrize(
    "source", ["bob@c1", "10.64.2.20", "10.96.0.9", "root@c1", "web", "nobody@c1", "alice@outside", "30"]
)
def test_user_sends_from_what_is_his_alone(source):
    with pytest.raises(PointError):
        traced(source, "10", asker=A)


def test_user_on_a_host_is_himself():
    assert "uid 1001" in Finder(STATE, SETTINGS, "cl", A, UIDS.__getitem__, SERVICES).source("c1").text


@pytest.mark.parametrize("target", ["30", "10:c9", "10:pod2", "127.0.0.1", ""])
def test_what_is_no_point_is_refused(target):
    with pytest.raises(PointError):
        traced("10", target)


def test_failures_of_this_node_are_reported_if_it_is_on_the_way():
    steps = traced("10", "10:c2")
    errors = {"filter": "nft said no", "il1002": "bob's"}
    assert [step.by for step in failures("c1", errors, steps, show_all=True)] == [
        "not as wanted: nft said no",
        "not as wanted: bob's",
    ]
    (step,) = failures("c1", errors, steps, show_all=False)
    assert (step.check, step.verdict) == ("filter", Verdict.DEPENDS)
    assert "nft" not in step.by
    assert failures("login", errors, steps, show_all=True) == []


GATED = replace(SETTINGS, gateways=Gateways())


def gated(**changes):
    """Return a state where the login node is the gateway."""
    return replace(STATE, nodes={**NODES, "login": replace(NODES["login"], gateway=True)}, gateway="login", **changes)


@pytest.mark.parametrize(
    ("target", "wanted", "node", "check", "by"),
    [
        ("outside", Verdict.PASSES, "login", "from_pods", "network_egress_default"),
        ("198.51.100.9", Verdict.REFUSED, "login", "from_pods", "network_egress:"),
        ("169.254.169.254", Verdict.REFUSED, "c1", "from_pods", "does not lead out"),
        ("login", Verdict.PASSES, "login", "input", "no rule forbids it"),
        ("192.0.2.77", Verdict.REFUSED, "c1", "from_pods", "network_host_ports"),
    ],
)
def test_way_out_leads_over_the_gateway(target, wanted, node, check, by):
    port = 6817 if target == "login" else 80
    steps = traced("10", target, port, state=gated(), settings=GATED)
    assert (verdict(steps), steps[-1].node, steps[-1].check) == (wanted, node, check)
    assert by in steps[-1].by


def test_way_out_without_a_gateway_ends_on_the_pods_node():
    for state in (
        STATE,
        replace(gated(), gateway=""),
        gated(users={A: replace(ALICE, legs={"c1": ALICE.legs["c1"]}), B: BOB}),
    ):
        steps = traced("10", "outside", state=state, settings=GATED)
        assert (verdict(steps), steps[-1].node) == (Verdict.REFUSED, "c1")
        assert "none leads out now" in steps[-1].by


@pytest.mark.parametrize("port", [0, 51820])
def test_way_to_another_node_is_that_of_vxlan_in_the_clear_or_encrypted(port):
    steps = traced("10", "10:c2", settings=replace(SETTINGS, wireguard_port=port))
    assert verdict(steps) is Verdict.PASSES
    assert [step.check for step in steps].count("input") == 1
