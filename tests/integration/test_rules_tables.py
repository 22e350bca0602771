"""The packet filter as nft and the kernel hold it, beside other people's tables."""

from contextlib import closing
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.clients import nftables
from isthmus.model.network import Node, State
from isthmus.model.node_network import Leg, NodePlan, Pod
from isthmus.network.node import rules
from tests.support.networks.namespaces import Namespace, needs_root
from tests.support.networks.pod_networks import SETTINGS

pytestmark = needs_root

BLOCK, OTHER = IPv4Network("10.128.1.0/24"), IPv4Network("10.128.2.0/23")
HERE = IPv4Address("192.0.2.1")
LEG = Leg(20001, 20001, BLOCK[1], (BLOCK, OTHER), HERE, 1450)
POD = Pod(7, 20001, 20001, BLOCK[101], BLOCK[1], (BLOCK,), 1450)
MEMBERS = State({f"n{number}": Node(f"n{number}", HERE + number) for number in range(3)})
PLANS = [
    NodePlan(),
    NodePlan({20001: LEG}, {7: POD, 8: replace(POD, job=8, address=BLOCK[102])}),
    NodePlan({20001: replace(LEG, blocks=(BLOCK,)), 5: replace(LEG, vni=5, uid=5, blocks=(OTHER,))}, {7: POD}),
]
ADMINS = "table inet admin {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n"


@pytest.fixture
def node():
    with closing(Namespace()) as place:
        yield place


def wanted(plan, settings=SETTINGS):
    return rules.elements(plan, MEMBERS, "n0", settings)


def test_tables_that_are_not_there_hold_nothing(node):
    assert node.do(nftables.sets, rules.TABLE) == {}


def test_sets_follow_plans_by_their_differences(node):
    node.do(nftables.apply, rules.base(SETTINGS))
    have = node.do(nftables.sets, rules.TABLE)
    assert have == {name: frozenset() for name in wanted(NodePlan())}
    for plan in (*PLANS, *reversed(PLANS)):
        node.do(nftables.apply, rules.change(have, wanted(plan)))
        have = node.do(nftables.sets, rules.TABLE)
        assert have == wanted(plan)
        assert rules.change(have, wanted(plan)) == ""


def test_base_again_replaces_rules_and_elements_at_once(node):
    for settings in (SETTINGS, replace(SETTINGS, egress=(), services=()), rules.Settings(SETTINGS.pods)):
        text = rules.base(settings) + rules.change({}, wanted(PLANS[1], settings))
        node.do(nftables.apply, text)
        node.do(nftables.apply, text)
        assert node.do(nftables.sets, rules.TABLE) == wanted(PLANS[1], settings)


def test_refused_text_changes_nothing(node):
    node.do(nftables.apply, rules.base(SETTINGS) + rules.change({}, wanted(PLANS[1])))
    bad = rules.base(replace(SETTINGS, services=(rules.Service(rules.Protocol.TCP, rules.Ports(0, 99999)),)))
    for ask in (nftables.apply, nftables.check):
        with pytest.raises(nftables.NftError, match="99999"):
            node.do(ask, bad)
    assert node.do(nftables.sets, rules.TABLE) == wanted(PLANS[1])


def test_check_changes_nothing(node):
    node.do(nftables.check, rules.base(SETTINGS))
    assert node.run("nft", "list", "ruleset").stdout == ""


def test_tables_of_others_survive(node):
    node.do(nftables.apply, ADMINS)
    node.do(nftables.apply, rules.base(SETTINGS) + rules.change({}, wanted(PLANS[1])))
    node.do(nftables.apply, rules.base(SETTINGS))
    assert node.run("nft", "list", "table", "inet", "admin").stdout == ADMINS


def test_settings_of_every_kind_are_rules_nft_takes(node):
    ports = (rules.Ports(80, 80), rules.Ports(8000, 8100))
    every = [
        rules.Egress(action, to, protocol, () if protocol == rules.Protocol.ICMP else some, uid)
        for action in rules.Action
        for to in (IPv4Network("0.0.0.0/0"), IPv4Network("192.0.2.0/28"), IPv4Network("192.0.2.9/32"))
        for protocol in (None, *rules.Protocol)
        for some in ((), ports[:1], ports)
        for uid in (None, 0, 4294967294)
    ]
    settings = rules.Settings(
        SETTINGS.pods,
        slurm=(),
        services=tuple(rules.Service(protocol, ports[1]) for protocol in (rules.Protocol.TCP, rules.Protocol.UDP)),
        hosts=(IPv4Network("192.0.2.0/28"), IPv4Network("192.0.2.99/32")),
        barred=(),
        egress=tuple(every),
        default=rules.Action.DENY,
    )
    node.do(nftables.apply, rules.base(settings))
