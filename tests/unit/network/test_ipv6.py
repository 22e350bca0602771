"""IPv6 of private networks: addresses that follow from others, what is planned of them, shown, named, and filtered."""

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest

from isthmus.model.network import Driver, Job, Node, State, User
from isthmus.model.networks.ipv6 import beginning, beside, block_beside, companion, prefix
from isthmus.model.node_network import UNKNOWN, mac
from isthmus.network.api.shown import Shown
from isthmus.network.dns import records as dns
from isthmus.network.dns.zones import Zones
from isthmus.network.drivers.private.plan import Planner, desired
from isthmus.network.node import refused, rules, steps
from isthmus.network.node.converge import Converger
from isthmus.network.node.steps import difference
from isthmus.network.trace.points import Finder, PointError, visible
from isthmus.network.trace.way import OverIPv6, Probe, Verdict, trace, verdict
from tests.support.fakes.kernel import FakeFollower, FakeKernel

RANGE = IPv6Network("fd12:3456:789a::/48")
SIX = prefix(RANGE)
NODES = {name: Node(name, IPv4Address(f"192.0.2.{number}")) for number, name in enumerate(("c1", "c2"), 1)}


def user(uid, name):
    block = IPv4Network(f"10.64.{uid}.0/24")
    return User(uid, name, 4096 + uid, (block,), {"c1": block[1], "c2": block[2]}, {"web": block[200]})


def job(number, owner, driver=Driver.PRIVATE):
    addresses = (owner.blocks[0][11], owner.blocks[0][12]) if driver is Driver.PRIVATE else ()
    return Job(number, owner.uid, f"j{number}", driver, ("c1", "c2"), addresses)


ALICE, BOB = user(1, "alice"), user(2, "bob")
STATE = State(
    NODES,
    {each.uid: each for each in (ALICE, BOB)},
    {each.id: each for each in (job(10, ALICE), job(20, BOB), job(30, ALICE, Driver.FLANNEL))},
)
SETTINGS = rules.Settings(IPv4Network("10.64.0.0/16"), ipv6=RANGE)


def test_address_goes_with_one_of_ipv4_and_back():
    six = beside(SIX, IPv4Address("10.64.1.11"))
    assert six == IPv6Address("fd12:3456:789a::10.64.1.11") == IPv6Address("fd12:3456:789a::a40:10b")
    assert (companion(SIX, six), beginning(six), mac(six)) == (
        IPv4Address("10.64.1.11"),
        SIX,
        mac(IPv4Address("10.64.1.11")),
    )
    assert block_beside(SIX, ALICE.blocks[0]) == IPv6Network("fd12:3456:789a::a40:100/120")
    assert companion(SIX, IPv6Address("fd12:3456:789a:1::a40:10b")) is None


def test_networks_of_users_are_apart_as_their_blocks_are():
    blocks = [IPv4Network("10.64.0.0/26"), IPv4Network("10.64.0.64/26"), IPv4Network("10.64.1.0/24")]
    six = [block_beside(SIX, block) for block in blocks]
    assert not any(one.overlaps(other) for one in six for other in six if one != other)
    assert all(each.subnet_of(RANGE) for each in six)
    assert [each.num_addresses for each in six] == [block.num_addresses for block in blocks]


def test_plan_has_it_only_where_the_cluster_has():
    plain, dual = desired(STATE, "c1"), desired(STATE, "c1", SIX)
    assert {each.ipv6 for each in (*plain.legs.values(), *plain.pods.values())} == {None}
    assert dual.legs == {vni: replace(leg, ipv6=SIX) for vni, leg in plain.legs.items()}
    assert dual.pods == {number: replace(pod, ipv6=SIX) for number, pod in plain.pods.items()}


@pytest.mark.parametrize(("carried", "has_it"), [(1330, True), (1329, False)])
def test_pods_whose_packets_are_too_short_do_without(carried, has_it):
    planner = Planner("c1", SIX)
    plan = planner.plan(replace(STATE, nodes={**NODES, "c2": replace(NODES["c2"], mtu=carried)}))
    assert {each.ipv6 for each in (*plan.legs.values(), *plan.pods.values())} == {SIX if has_it else None}
    assert bool(planner.narrow) is not has_it
    if not has_it:
        assert "c2 carries no more, and IPv6 needs 1280; raise its MTU" in planner.narrow
    assert planner.plan(STATE).legs and not planner.narrow


def test_node_says_why_pods_do_without_and_goes_on():
    kernel = FakeKernel()
    converger = Converger("c1", kernel, FakeFollower([], "filter"), FakeFollower([], "names"), ipv6=SIX)
    assert converger.run(lambda: STATE).errors == {}
    assert {each.ipv6 for each in (*kernel.legs.values(), *kernel.pods.values())} == {SIX}
    narrow = replace(STATE, nodes={**NODES, "c2": replace(NODES["c2"], mtu=700)}, jobs={})
    assert list(converger.run(lambda: narrow).errors) == ["ipv6"]
    assert kernel.pods == {}


@pytest.mark.parametrize("found", [None, UNKNOWN, IPv6Network("fd00::/96")])
def test_live_pods_get_it_in_place_and_are_attached_again(found):
    wanted = desired(STATE, "c1", SIX)
    had = replace(
        wanted,
        legs={vni: replace(leg, ipv6=found) for vni, leg in wanted.legs.items()},
        pods={number: replace(pod, ipv6=found) for number, pod in wanted.pods.items()},
    )
    assert difference(had, wanted) == (
        *(steps.ChangeLeg(leg, ipv6=True) for _, leg in sorted(wanted.legs.items())),
        *(steps.ChangePod(pod, ipv6=True, attach=True) for _, pod in sorted(wanted.pods.items())),
    )


def test_elements_go_with_those_of_ipv4():
    plan = desired(STATE, "c1", SIX)
    found = rules.elements(plan, STATE, "c1", SETTINGS)
    own = "fd12:3456:789a::a40:10b"
    assert found["networks_ip6"] == {
        "il4097 . fd12:3456:789a::a40:100/120",
        "il4098 . fd12:3456:789a::a40:200/120",
    }
    assert "1 . fd12:3456:789a::a40:100/120" in found["owned_ip6"]
    assert "il4097 . fd12:3456:789a::a40:101" in found["legs_ip6"]
    assert f"iv10 . 0a:58:0a:40:01:0b . {own}" in found["pods_ip6"]
    assert "iv10 . 0x1010a580a40010b" in found["solicits_ip6"]
    assert f"iv10 . {int(IPv6Address(own)):#x} . 0x2010a580a40010b" in found["advertises_ip6"]
    assert f"iv10 . {int(IPv6Address(own)):#x}" in found["confirms_ip6"]
    assert all(f"set {name} {{" in rules.base(SETTINGS) for name in found)


def test_without_a_range_rules_and_elements_have_nothing_of_it():
    off = replace(SETTINGS, ipv6=None)
    assert re.findall(r".*(?:ip6|ipv6|icmpv6).*", rules.base(off)) == [
        *["meta nfproto ipv6 drop"] * 3,
        "ether type ip6 drop",
    ]
    plan = desired(STATE, "c1")
    assert not any("ip6" in name for name in rules.elements(plan, STATE, "c1", off))


def test_change_names_the_table_of_each_set():
    wanted = rules.elements(desired(STATE, "c1", SIX), STATE, "c1", SETTINGS)
    for line in rules.change({}, wanted).splitlines():
        name = line.split()[4]
        assert line.split()[2] == ("bridge" if name in ("pods", *rules.ipv6.BRIDGE_SETS) else "inet")


@pytest.mark.parametrize(
    ("chain", "rule", "why"),
    [
        ("prerouting_ip6", "iifname . ether saddr . ip6 saddr != @pods_ip6 drop", refused.Why.FORGED),
        ("prerouting_ip6", "icmpv6 type { nd-router-solicit } drop", refused.Why.FORGED),
        ("from_leg_ip6", "iifname . ip6 saddr != @networks_ip6 drop", refused.Why.FORGED),
        ("from_leg_ip6", "drop", refused.Why.POD_TO_HOST),
        ("own_leg_ip6", "drop", refused.Why.POD_TO_HOST),
        ("to_pods_ip6", "reject with icmpv6 type admin-prohibited", refused.Why.HOST_TO_POD),
        ("prerouting_ip6", "ip6 saddr :: drop", None),
        ("to_pods_ip6", "icmpv6 type { mld-listener-query } drop", None),
    ],
)
def test_refused_packets_are_counted_as_what_they_are(chain, rule, why):
    assert refused.why(chain, rule) == why
    (counted,) = refused.counted(chain, [rule])
    assert ("counter name" in counted) is (why is not None)


def test_names_have_both_addresses_in_private_networks_alone():
    zones = Zones("cl", SIX)
    zones.follow(STATE)
    assert zones.text(1).splitlines() == [
        "10.64.1.200 web.alice.cl",
        "fd12:3456:789a::a40:1c8 web.alice.cl",
        "10.64.1.11 pod0.10.alice.cl pod0.j10.alice.cl 10.alice.cl j10.alice.cl",
        "fd12:3456:789a::a40:10b pod0.10.alice.cl pod0.j10.alice.cl 10.alice.cl j10.alice.cl",
        "10.64.1.12 pod1.10.alice.cl pod1.j10.alice.cl 10.alice.cl j10.alice.cl",
        "fd12:3456:789a::a40:10c pod1.10.alice.cl pod1.j10.alice.cl 10.alice.cl j10.alice.cl",
    ]
    plain = Zones("cl")
    plain.follow(STATE)
    assert ":" not in plain.all_users((Driver.PRIVATE, Driver.FLANNEL))


@pytest.mark.parametrize(
    ("block", "zones"),
    [
        ("fd00::a40:100/120", ["1.0.0.4.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f"]),
        ("fd00::a40:180/122", ["1.0.0.4.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f"]),
        (
            "fd00::a40:200/119",
            [f"{digit}.0.0.4.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f" for digit in "23"],
        ),
    ],
)
def test_reverse_zones_end_at_digits(block, zones):
    assert list(dns.reverse_zones6([IPv6Network(block)])) == [f"{zone}.ip6.arpa" for zone in zones]


def test_dns_of_a_leg_answers_for_its_blocks_by_ipv6():
    leg = next(iter(desired(STATE, "c1", SIX).legs.values()))
    assert "ip6.arpa" in dns.corefile([leg], dns.DnsSettings("cl", ipv6=SIX))
    assert "ip6.arpa" not in dns.corefile([leg], dns.DnsSettings("cl"))


def test_list_shows_it_of_private_networks_alone():
    dual, plain = Shown(SIX), Shown(None)
    assert dual.job(STATE.jobs[10], STATE)["ipv6"] == ["fd12:3456:789a::a40:10b", "fd12:3456:789a::a40:10c"]
    assert dual.job(STATE.jobs[30], STATE)["ipv6"] == []
    assert dual.user(ALICE)["ipv6"] == ["fd12:3456:789a::a40:100/120"]
    assert dual.reserved(ALICE, "web", ALICE.reserved["web"])["ipv6"] == "fd12:3456:789a::a40:1c8"
    shown = plain.job(STATE.jobs[10], STATE), plain.user(ALICE), plain.reserved(ALICE, "web", ALICE.reserved["web"])
    assert not any("ipv6" in each for each in shown)


def finder(asker=None, settings=SETTINGS):
    uids = {"alice": 1, "bob": 2, "root": 0}
    return Finder(visible(STATE, asker), settings, "cl", asker, uids.__getitem__, IPv4Network("10.96.0.0/16"))


def traced(source, target, port=80, protocol=rules.Protocol.TCP):
    find = finder()
    ends = find.source(source), find.target(target)
    assert any(end.is_ipv6 for end in ends)
    return trace(STATE, SETTINGS, *ends, Probe(protocol, port, OverIPv6.of(SETTINGS)))


@pytest.mark.parametrize(
    ("source", "target", "port", "wanted", "check", "by"),
    [
        ("10", "fd12:3456:789a::10.64.1.12", 80, Verdict.PASSES, "forward", "pairs"),
        ("10", "fd12:3456:789a::10.64.2.11", 80, Verdict.MISSING, "route", "its own user's network alone"),
        ("10", "fd12:3456:789a::10.64.1.1", 22, Verdict.REFUSED, "own_leg_ip6", "its very address by IPv6"),
        ("10", "fd12:3456:789a::10.64.1.1", 4000, Verdict.DEPENDS, "own_leg_ip6", "socket wildcard 0"),
        ("fd12:3456:789a::a40:10b", "c2", 22, Verdict.MISSING, "route", "its own user's network alone"),
        ("fd12:3456:789a::a40:10b", "outside", 80, Verdict.MISSING, "route", "its own user's network alone"),
        ("alice@c1", "fd12:3456:789a::a40:10c", 80, Verdict.PASSES, "forward", "pairs"),
        ("bob@c1", "fd12:3456:789a::a40:10b", 80, Verdict.REFUSED, "to_pods_ip6", "its own uid"),
        ("root@c1", "fd12:3456:789a::a40:10b", 80, Verdict.PASSES, "pod", "isthmus-10"),
        ("outside", "fd12:3456:789a::a40:10b", 80, Verdict.REFUSED, "forward", "nobody outside begins"),
        ("outside", "fd12:3456:789a::a40:101", 80, Verdict.REFUSED, "input", "nobody outside begins"),
    ],
)
def test_trace_by_ipv6_names_what_decided(source, target, port, wanted, check, by):
    found = traced(source, target, port)
    assert (verdict(found), found[-1].check) == (wanted, check)
    assert by in found[-1].by


def test_ping_is_traced_as_icmpv6():
    found = traced("10", "fd12:3456:789a::10.64.1.1", 0, rules.Protocol.ICMP)
    assert (verdict(found), found[-1].by) == (Verdict.PASSES, "icmpv6 type echo-request accept")


@pytest.mark.parametrize(
    ("word", "settings", "why"),
    [
        ("2001:db8::1", SETTINGS, "pods have no way out by IPv6; use an IPv4 address"),
        ("fd12:3456:789a::1", SETTINGS, "pods have no way out by IPv6"),
        ("::1", SETTINGS, "each pod's and each host's own"),
        ("fd12:3456:789a::a40:10b", replace(SETTINGS, ipv6=None), "an admin sets network_ipv6_range"),
    ],
)
def test_address_that_is_no_pods_is_refused_with_the_reason(word, settings, why):
    with pytest.raises(PointError, match=re.escape(why)):
        finder(settings=settings).target(word)


def test_another_users_address_is_shown_to_nobody():
    assert "not yours" in finder(asker=2).target("fd12:3456:789a::a40:10b").text
