"""What the packet filter has for gateways, and whom it lets out and in."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as some

from isthmus.model.network import Driver, Exposure, Job, Node, State, Transport, User
from isthmus.model.node_network import mac
from isthmus.network.drivers.private import plan
from isthmus.network.gateways.choice import leading, way_out
from isthmus.network.gateways.exposing import is_permitted
from isthmus.network.gateways.settings import Gateways, Ingress, Outside
from isthmus.network.node import rules
from isthmus.network.trace.ruleset import Fate, Ruleset

ALICE, BOB = 1001, 1002
ANYWHERE, SHUT = IPv4Network("0.0.0.0/0"), IPv4Network("203.0.113.0/24")
ALICES, SITE, LAST = map(IPv4Address, ("198.51.100.10", "198.51.100.20", "198.51.100.22"))
NODES = {
    name: Node(name, IPv4Address("192.0.2.0") + number, gateway=name[0] == "g")
    for number, name in enumerate(("c1", "g1", "g2"), 1)
}


def user(uid, name):
    block = IPv4Network(f"10.64.{uid - 1000}.0/24")
    legs = {node: block[place] for place, node in enumerate(NODES, 1)}
    return User(uid, name, uid, (block,), legs, {"web": block[100], "db": block[101]})


USERS = {ALICE: user(ALICE, "alice"), BOB: user(BOB, "bob")}
JOBS = {
    number: Job(number, uid, "run", Driver.PRIVATE, ("c1",), (USERS[uid].reserved["web"],), "web")
    for number, uid in enumerate(USERS, 7)
}
GATEWAYS = Gateways((Outside(SITE, LAST), Outside(ALICES, ALICES, frozenset({ALICE}))))
STATE = State(NODES, USERS, JOBS, gateway="g1")


def settings(gateways=GATEWAYS):
    return rules.Settings(IPv4Network("10.64.0.0/16"), gateways=gateways)


def elements(node, state=STATE, gateways=GATEWAYS):
    return rules.elements(plan.desired(state, node), state, node, settings(gateways))


def test_pods_frames_are_turned_to_their_users_leg_on_the_gateway_that_leads():
    for gateway in ("g1", "g2"):
        state = replace(STATE, gateway=gateway)
        legs = {f"iv{number} : {mac(USERS[job.uid].legs[gateway])}" for number, job in JOBS.items()}
        assert elements("c1", state)["ways"] == legs


def test_only_the_gateway_that_leads_passes_on():
    legs = {f"il{uid}" for uid in USERS}
    assert [elements(node)["gates"] for node in NODES] == [frozenset(), legs, frozenset()]
    nobody = replace(STATE, gateway="")
    assert [elements(node, nobody)["gates"] for node in NODES] == [frozenset()] * 3


def test_gateway_has_a_leg_of_each_user_with_pods_and_of_no_other():
    assert set(plan.desired(STATE, "g2").legs) == {ALICE, BOB}
    jobs = {7: JOBS[7], 8: replace(JOBS[8], driver=Driver.FLANNEL, addresses=())}
    assert set(plan.desired(replace(STATE, jobs=jobs), "g2").legs) == {ALICE}
    no_gateways = {name: replace(node, gateway=False) for name, node in NODES.items()}
    assert not plan.desired(replace(STATE, nodes=no_gateways), "g2").legs


@pytest.mark.parametrize(("known", "wanted"), [("g2", "g2"), ("", ""), ("gone", ""), ("c1", "")])
def test_what_leads_is_a_gateway(known, wanted):
    """Heard of or not: it goes on until another one takes over."""
    assert leading(replace(STATE, gateway=known)) == wanted
    way = way_out(replace(STATE, gateway=known), USERS[ALICE])
    assert way == ((wanted, USERS[ALICE].legs[wanted]) if wanted else None)


def test_user_without_a_leg_there_has_no_way_out():
    assert way_out(STATE, replace(USERS[ALICE], legs={"c1": USERS[ALICE].legs["c1"]})) is None
    assert leading(State()) == ""


def test_users_entry_comes_before_that_of_all():
    lines = rules.tables(settings())["inet"]["postrouting"]
    assert [line.split("snat ip to ")[1].split()[0] for line in lines if "snat" in line] == [
        f"{ALICES}:1024-65535",
        f"{ALICES}",
        f"{SITE}-{LAST}:1024-65535",
        f"{SITE}-{LAST}",
    ]
    assert lines[-1].endswith("masquerade")
    assert all("ip daddr != @peers" in line for line in lines if "snat" in line)
    assert elements("g1")["source_1"] == {"10.64.1.0/24"}
    assert elements("g2")["source_1"] == frozenset()


def test_every_set_of_elements_is_declared():
    gateways = replace(GATEWAYS, ingress=(rule(uid=ALICE), rule()))
    written = rules.base(settings(gateways))
    for name in elements("g1", gateways=gateways):
        assert f"set {name} {{" in written or f"map {name} {{" in written


def test_cluster_without_gateways_has_nothing_of_them():
    written = rules.base(rules.Settings(IPv4Network("10.64.0.0/16")))
    assert not [word for word in ("gates", "ways", "members", "exposed", "snat") if word in written]


def rule(allows=True, source=ANYWHERE, ports=(1, 65535), protocol=Transport.TCP, uid=None, reservation=""):
    return Ingress(allows, source, protocol, *ports, uid, reservation)


def exposure(uid=ALICE, name="web", port=443, protocol=Transport.TCP):
    return Exposure(GATEWAYS.of(uid).first, protocol, port, uid, name)


def is_let_in(exposed, ingress, source, target, on="g1", state=STATE):
    """Return whether the rules' own text lets a packet from outside to a target: address, protocol, port."""
    gateways = replace(GATEWAYS, ingress=tuple(ingress))
    state = replace(state, exposed={each.door: each for each in exposed})
    found = elements(on, state, gateways)
    seen, protocol, port = target
    doors = dict(each.split(" : ") for each in found["doors"])
    inside = doors.get(f"{seen} . {protocol} . {port}")
    if inside is None:
        return None
    packet = {
        "meta nfproto": "ipv4",
        "iifname": "uplink",
        "oifname": f"il{ALICE}",
        "ip saddr": source,
        "ip daddr": IPv4Address(inside),
        "meta l4proto": str(protocol),
        "th dport": port,
        "ct state": "new",
        "ct direction": "original",
        "ct original ip daddr": seen,
    }
    met = Ruleset(rules.tables(settings(gateways))["inet"], found).walk("forward", packet)
    return met[-1].fate is Fate.ACCEPT


NEAR, FAR = IPv4Address("198.51.100.99"), IPv4Address("203.0.113.9")
HERE = (ALICES, Transport.TCP, 443)


def test_nobody_comes_in_without_a_rule_or_without_an_open_port():
    assert is_let_in([exposure()], [], NEAR, HERE) is False
    assert is_let_in([], [rule()], NEAR, HERE) is None
    assert is_let_in([exposure()], [rule()], NEAR, HERE) is True
    assert is_let_in([exposure()], [rule()], NEAR, HERE, on="g2") is None


def test_port_that_was_opened_at_another_address_leads_nowhere():
    assert is_let_in([replace(exposure(), address=SITE)], [rule()], NEAR, (SITE, Transport.TCP, 443)) is None


def test_reservation_that_is_gone_leads_nowhere():
    users = {**USERS, ALICE: replace(USERS[ALICE], reserved={})}
    assert is_let_in([exposure()], [rule()], NEAR, HERE, state=replace(STATE, users=users)) is None


exposures = some.builds(
    exposure,
    some.sampled_from([ALICE, BOB]),
    some.sampled_from(["web", "db"]),
    some.integers(1, 4),
    some.sampled_from(Transport),
)
ports = some.tuples(some.integers(1, 4), some.integers(1, 4)).map(sorted)
ingress = some.builds(
    rule,
    some.booleans(),
    some.sampled_from([ANYWHERE, SHUT]),
    ports,
    some.sampled_from(Transport),
    some.sampled_from([None, ALICE, BOB]),
    some.just(""),
)
named = some.builds(
    rule,
    some.booleans(),
    some.sampled_from([ANYWHERE, SHUT]),
    ports,
    some.sampled_from(Transport),
    some.sampled_from([ALICE, BOB]),
    some.sampled_from(["web", "db"]),
)


@given(
    some.lists(exposures, max_size=4, unique_by=lambda each: each.door),
    some.lists(ingress | named, max_size=4),
    some.sampled_from([NEAR, FAR]),
)
def test_first_rule_that_fits_decides_for_open_ports(exposed, given_rules, source):
    """The text does what the settings say, in the simplest words there are for it."""
    for each in exposed:
        fitting = [
            one.allows
            for one in given_rules
            if source in one.source
            and one.uid in (None, each.uid)
            and one.reservation in ("", each.reservation)
            and one.protocol == each.protocol
            and one.first <= each.port <= one.last
        ]
        wanted = fitting[0] if fitting else False
        assert is_let_in(exposed, given_rules, source, each.door) is wanted
        if wanted:
            gateways = Gateways(ingress=tuple(given_rules))
            assert is_permitted(gateways, each.uid, each.reservation, each.protocol, each.port)
