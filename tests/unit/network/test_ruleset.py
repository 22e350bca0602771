"""The filter's own text, walked as nft walks it."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Network

import pytest

from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.node import ipv6, rules
from isthmus.network.trace.ruleset import POLICY, Fate, Ruleset, RulesetError, Unknown

HOOK = "type filter hook input priority filter; policy accept"
SETS = {"few": frozenset({"192.0.2.1", "192.0.2.2"}), "owned": frozenset({"7 . 10.0.0.0/24"}), "none": frozenset()}
PACKET = {
    "meta l4proto": "tcp",
    "ip saddr": IPv4Address("10.0.0.5"),
    "ip daddr": IPv4Address("192.0.2.1"),
    "iifname": "il4096",
    "tcp dport": 80,
    "th dport": 80,
    "tcp sport": 49152,
    "th sport": 49152,
    "tcp flags & (fin | syn | rst | ack)": "syn",
    "meta skuid": 7,
    "ct state": "new",
}


def walk(*lines, packet=PACKET, **chains):
    return Ruleset({"main": [HOOK, *lines], **chains}, SETS).walk("main", packet)


@pytest.mark.parametrize(
    "expression",
    [
        'iifname "il*"',
        'iifname "il4096"',
        'iifname != "iv*"',
        "ip daddr @few",
        "ip saddr != @few",
        "ip daddr { 198.51.100.1/32, 192.0.2.0/30 }",
        "ip saddr 10.0.0.0/8 ip daddr != 10.0.0.0/8",
        "tcp dport { 22, 79-81 }",
        "tcp dport 1-80",
        "meta l4proto { tcp, udp } th dport 80",
        "ct state established,new",
        "meta skuid . ip saddr @owned",
        "meta skuid { 0, 7 }",
        'iifname { "lo", "il4096" }',
        "tcp flags & (fin | syn | rst | ack) == syn",
        "tcp flags & (fin | syn | rst | ack) != (syn | ack)",
        "tcp sport != 53 th sport 1024-65535",
    ],
)
def test_expression_matches(expression):
    (met,) = walk(f"{expression} drop")
    assert (met.rule, met.fate, met.sure) == (f"{expression} drop", Fate.DROP, True)


@pytest.mark.parametrize(
    "expression",
    [
        'iifname "iv*"',
        'iifname "il"',
        "ip daddr @none",
        "ip daddr != @few",
        "tcp dport 81",
        "udp dport 80",
        "udp dport != 80",
        "icmp type echo-request",
        "meta skuid 8",
        "meta skuid . ip daddr @owned",
        'iifname "il*" tcp dport 81',
        "ct state established,related",
        'oifname != "il*"',
    ],
)
def test_expression_does_not_match(expression):
    (met,) = walk(f"{expression} drop")
    assert (met.rule, met.fate) == (POLICY, Fate.ACCEPT)


def test_first_rule_that_matches_decides():
    (met,) = walk("tcp dport 1 drop", 'tcp dport 80 accept comment "the web"', "drop")
    assert (met.rule, met.why, met.fate) == ("tcp dport 80 accept", "the web", Fate.ACCEPT)


def test_jump_comes_back_and_goto_does_not():
    assert [met.rule for met in walk("jump other", "drop", other=["tcp dport 1 accept"])] == ["drop"]
    assert [met.rule for met in walk("goto other", "drop", other=["tcp dport 1 accept"])] == [POLICY]
    assert [met.rule for met in walk("jump other", "drop", other=["accept"])] == ["accept"]
    assert [met.rule for met in walk("jump a", "drop", a=["goto b", "accept"], b=["tcp dport 1 accept"])] == ["drop"]


def test_all_base_chains_of_a_hook_are_known():
    chains = {
        "input": [HOOK],
        "other": [HOOK, "drop"],
        "nat": [HOOK.replace("filter hook", "nat hook")],
        "inner": ["drop"],
    }
    assert Ruleset(chains, {}).at("input") == ["input", "other"]


def test_statements_without_a_verdict_are_passed():
    assert walk("meta mark set meta mark | 0x04", "notrack", "masquerade", "drop")[0].fate is Fate.DROP


def test_what_is_unknown_may_match():
    packet = PACKET | {"tcp dport": Unknown.UNKNOWN}
    maybe, last = walk("tcp dport 22 accept", "udp dport 5 accept", "drop", packet=packet)
    assert (maybe.rule, maybe.sure, last.fate, last.sure) == ("tcp dport 22 accept", False, Fate.DROP, True)


def test_what_is_unknown_does_not_match_when_the_rest_does_not():
    packet = PACKET | {"tcp dport": Unknown.UNKNOWN}
    assert len(walk("tcp dport 22 ip daddr @none accept", "ip daddr @none tcp dport 22 accept", packet=packet)) == 1


@pytest.mark.parametrize("line", ["ip6 hoplimit 1 drop", "tcp dport 80 queue", "ip daddr 10.0.0.0/8 log drop", "quota"])
def test_unknown_line_is_refused(line):
    with pytest.raises(RulesetError, match="cannot read"):
        walk(line)


EVERYTHING = rules.Settings(
    IPv4Network("10.128.0.0/12"),
    frozenset({5}),
    services=(rules.Service(rules.Protocol.UDP, rules.Ports(1, 9)),),
    hosts=(IPv4Network("192.0.2.9/32"),),
    egress=(
        rules.Egress(rules.Action.DENY, IPv4Network("198.51.100.0/24"), rules.Protocol.TCP, (rules.Ports(1, 9),), 1000),
        rules.Egress(rules.Action.ALLOW, ports=(rules.Ports(53, 53),)),
        rules.Egress(rules.Action.ALLOW, protocol=rules.Protocol.ICMP),
    ),
    default=rules.Action.DENY,
    shared=(Flannel(IPv4Network("10.32.0.0/12")),),
)


@pytest.mark.parametrize(
    "settings",
    [
        EVERYTHING,
        replace(EVERYTHING, slurm=(), barred=(), shared=(replace(EVERYTHING.shared[0], backend=Backend.HOST_GW),)),
        rules.Settings(EVERYTHING.pods),
        replace(EVERYTHING, ipv6=IPv6Network("fd12:3456:789a::/48")),
    ],
)
@pytest.mark.parametrize("family", ["inet", "bridge"])
def test_every_line_of_the_filter_can_be_read(settings, family):
    chains = rules.tables(settings)[family]
    empty = dict.fromkeys(
        ("peers", "owned", "legs", "networks", "pairs", "pods", "user_1000", "flannel_user_1000"), frozenset()
    ) | dict.fromkeys((*ipv6.SETS, *ipv6.BRIDGE_SETS), frozenset())
    for name in chains:
        lines = [HOOK, *(line for line in chains[name] if not line.startswith("type "))]
        for line in lines[1:]:
            Ruleset({**chains, "main": [HOOK, line]}, empty).walk("main", PACKET)
