"""Which rules of the filter are counted, and as what."""

import re
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

import pytest

from isthmus.model.subids import Range
from isthmus.network.drivers.flannel.rules import Backend, Flannel
from isthmus.network.logins.numbers import Logins
from isthmus.network.node import refused, rules
from isthmus.network.node.refused import LEAST_S, Refused, Why

SETTINGS = rules.Settings(
    IPv4Network("10.128.0.0/12"),
    servers=(IPv4Network("198.51.100.0/24"),),
    egress=(rules.Egress(rules.Action.DENY, IPv4Network("203.0.113.0/24")),),
    default=rules.Action.DENY,
    shared=(Flannel(IPv4Network("10.144.0.0/16")),),
    logins=Logins(20000, 20999, 250, (22, 443), 64030, 5, 64, is_here=True),
)
COUNTER = re.compile(
    r'counter name "refused_(\w+)" (?:drop|reject with icmp(?:v6)? type admin-prohibited)(?: comment "|$)'
)
REFUSES = re.compile(r'(?:drop|reject with icmp(?:v6)? type \S+)(?: comment "[^"]*")?$')


def lines(settings=SETTINGS):
    text = rules.base(settings, [Range("bob", 165536, 65536)])
    return [line for line in text.splitlines() if REFUSES.search(line)]


@pytest.mark.parametrize("backend", Backend)
def test_every_rule_that_refuses_is_counted_but_what_nobody_wants(backend):
    shared = (replace(SETTINGS.shared[0], backend=backend),)
    uncounted = {line for line in lines(replace(SETTINGS, shared=shared)) if not COUNTER.search(line)}
    assert {re.sub(r'"i\w\*"', "X", line.partition(' comment "')[0]) for line in uncounted} == {
        "meta nfproto ipv6 drop",
        "ether type ip6 drop",
        "iifname X drop",
        "ip daddr 127.0.0.153 tcp dport 153 meta skuid != 0 reject with icmp type admin-prohibited",
    }


def test_of_ipv6_only_what_nobody_wants_is_not_counted():
    off, on = (
        {line.partition(' comment "')[0] for line in lines(replace(SETTINGS, ipv6=each)) if not COUNTER.search(line)}
        for each in (None, IPv6Network("fd12:3456:789a::/48"))
    )
    groups = "{ mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report }"
    assert on - off == {"ip6 saddr :: drop", f"icmpv6 type {groups} drop"}


def test_every_reason_is_declared_and_used():
    assert {found[1] for line in lines() if (found := COUNTER.search(line))} == {*Why}
    assert all(f"counter refused_{why} {{" in rules.base(SETTINGS) for why in Why)


@pytest.mark.parametrize(
    ("chain", "rule", "why"),
    [
        ("to_pods", "drop", Why.HOST_TO_POD),
        ("to_logins", "drop", Why.HOST_TO_POD),
        ("from_leg", "drop", Why.POD_TO_HOST),
        ("from_flannel", "jump drop", Why.POD_TO_HOST),
        ("from_pods", "ip daddr 10.0.0.0/8 drop", Why.POD_TO_OUTSIDE),
        ("from_flannel_pods", "drop", Why.POD_TO_OUTSIDE),
        ("flannel_forward", "drop", Why.OUTSIDE_TO_POD),
        ("from_pods", "ip saddr != 10.128.0.0/12 drop", Why.FORGED),
        ("input", "udp dport 4789 ip saddr != @peers drop", Why.FORGED),
        ("dns_165536", "drop", Why.BOUNDS),
    ],
)
def test_chain_and_rule_say_why(chain, rule, why):
    assert refused.why(chain, rule) == why


def test_chain_that_nobody_thought_of_is_an_error():
    with pytest.raises(ValueError, match=r"chain towers: .*; name it like"):
        list(refused.counted("towers", ["drop"]))
    assert list(refused.counted("towers", ["accept"])) == ["accept"]


def test_trace_reads_the_rules_without_counters():
    assert not any(
        "counter" in line for chains in rules.tables(SETTINGS).values() for each in chains.values() for line in each
    )


def test_kernel_is_asked_at_most_every_few_seconds():
    now, answers = [0.0], [{"refused_forged": 1}, {"refused_forged": 4, "refused_bounds": 2, "an_admins": 9}]
    counts = Refused(lambda: answers.pop(0), lambda: now[0])
    assert counts.packets() == dict.fromkeys(Why, 0) | {Why.FORGED: 1}
    now[0] = LEAST_S - 0.1
    assert counts.packets()[Why.FORGED] == 1
    now[0] = LEAST_S
    assert counts.packets() == dict.fromkeys(Why, 0) | {Why.FORGED: 4, Why.BOUNDS: 2}
