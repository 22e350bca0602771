import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network

import pytest

from isthmus.model.network import Driver, Node, State
from isthmus.model.node_network import Leg, NodePlan, Pod, SharedPod
from isthmus.network.drivers.flannel.rules import Flannel
from isthmus.network.node.rules import Action, Egress, Ports, Protocol, Service, Settings, base, change, elements

PODS, BLOCK, SECOND = map(IPv4Network, ("10.128.0.0/12", "10.128.1.0/24", "10.128.2.0/24"))
HERE, PEER = IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2")
SETTINGS = Settings(PODS)
STATE = State({"here": Node("here", HERE), "peer": Node("peer", PEER)})
PLAN = NodePlan(
    {4096: Leg(4096, 1000, BLOCK[1], (BLOCK, SECOND), HERE, 1450)},
    {7: Pod(7, 1000, 4096, BLOCK[101], BLOCK[1], (BLOCK, SECOND), 1450)},
)
FLANNEL = Flannel(IPv4Network("10.144.0.0/16"))
SHARED = SharedPod(Driver.FLANNEL, 8, 1000, IPv4Address("10.144.1.2"), IPv4Address("10.144.1.1"))
TO = IPv4Network("198.51.100.0/24")


def chain(settings, name):
    """Return the rules of one chain, without their comments and counters."""
    lines = base(settings).split(f"chain {name} {{\n")[1].split("\n}")[0].splitlines()
    return [re.sub(r'counter name "\w+" ', "", line.partition(' comment "')[0]) for line in lines]


def test_elements_are_those_of_the_plan_and_of_the_other_members():
    assert elements(PLAN, STATE, "here", SETTINGS) == {
        "peers": {"192.0.2.2"},
        "owned": {"1000 . 10.128.1.0/24", "1000 . 10.128.2.0/24"},
        "legs": {"il4096 . 10.128.1.1"},
        "networks": {"il4096 . 10.128.1.0/24", "il4096 . 10.128.2.0/24"},
        "pairs": {"il4096 . il4096"},
        "pods": {"iv7 . 0a:58:0a:80:01:65 . 10.128.1.101"},
    }


def test_elements_of_an_empty_node_name_every_set():
    found = elements(NodePlan(), State(), "here", replace(SETTINGS, egress=(Egress(Action.DENY, uid=5),)))
    assert found == dict.fromkeys(("peers", "owned", "legs", "networks", "pairs", "pods", "user_5"), frozenset())


def test_users_that_rules_name_have_a_set_of_their_legs():
    settings = replace(SETTINGS, egress=(Egress(Action.DENY, uid=1000), Egress(Action.ALLOW, uid=1001)))
    found = elements(PLAN, STATE, "here", settings)
    assert (found["user_1000"], found["user_1001"]) == ({"il4096"}, frozenset())
    assert "set user_1001 {\ntype ifname\n}" in base(settings)


def test_every_set_of_elements_is_declared():
    for name in elements(PLAN, STATE, "here", SETTINGS):
        assert f"set {name} {{" in base(SETTINGS)


def test_change_removes_first_and_in_the_table_of_the_set():
    have = {"legs": frozenset({"il1 . 10.0.0.1", "il2 . 10.0.0.2"}), "pods": frozenset()}
    want = {"legs": frozenset({"il2 . 10.0.0.2", "il3 . 10.0.0.3"}), "pods": frozenset({"b", "a"})}
    assert change(have, want).splitlines() == [
        "delete element inet isthmus legs { il1 . 10.0.0.1 }",
        "add element inet isthmus legs { il3 . 10.0.0.3 }",
        "add element bridge isthmus pods { a, b }",
    ]


def test_change_of_nothing_is_nothing():
    same = elements(PLAN, STATE, "here", SETTINGS)
    assert change(same, same) == ""


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (Egress(Action.DENY), "reject with icmp type admin-prohibited"),
        (Egress(Action.ALLOW, TO), "ip daddr 198.51.100.0/24 accept"),
        (Egress(Action.ALLOW, protocol=Protocol.ICMP), "meta l4proto icmp accept"),
        (
            Egress(Action.ALLOW, TO, Protocol.TCP, (Ports(80, 80), Ports(90, 99)), 7),
            "iifname @user_7 ip daddr 198.51.100.0/24 meta l4proto tcp th dport { 80, 90-99 } accept",
        ),
        (Egress(Action.ALLOW, ports=(Ports(53, 53),)), "meta l4proto { tcp, udp } th dport { 53 } accept"),
    ],
)
def test_egress_rule_is_one_line(rule, text):
    assert chain(replace(SETTINGS, egress=(rule,)), "from_pods")[-2:] == [text, "accept"]


def test_egress_rules_keep_their_order_and_come_after_what_nobody_reaches():
    rules = tuple(Egress(Action.ALLOW, network) for network in TO.subnets(2))
    lines = chain(replace(SETTINGS, egress=rules, default=Action.DENY), "from_pods")
    assert lines[-5:-1] == [f"ip daddr {network} accept" for network in TO.subnets(2)]
    assert lines[-1] == "reject with icmp type admin-prohibited"
    assert any("169.254.0.0/16" in line and line.endswith("drop") for line in lines[:-5])


def test_hosts_and_members_offer_the_same_services():
    settings = replace(SETTINGS, hosts=(TO,), services=(Service(Protocol.UDP, Ports(123, 123)),))
    privileged = "meta l4proto { tcp, udp, udplite, dccp, sctp } th sport 0-1023 drop"
    assert chain(settings, "host_services") == [privileged, "tcp dport { 6817-6819 } accept", "udp dport 123 accept"]
    lines = chain(settings, "from_pods")
    for whom in ("@peers", "{ 198.51.100.0/24 }"):
        place = lines.index(f"ip daddr {whom} jump host_services")
        assert lines[place + 1] == f"ip daddr {whom} drop"


def test_server_of_homes_is_reached_by_no_pod_and_before_the_rules():
    settings = replace(SETTINGS, servers=(TO,), egress=(Egress(Action.ALLOW),), shared=(FLANNEL,))
    for name in ("from_pods", "from_flannel_pods"):
        assert chain(settings, name)[-3:-1] == ["ip daddr { 198.51.100.0/24 } drop", "accept"]


def test_no_packet_is_masqueraded_from_a_privileged_port():
    for name in ("postrouting", "flannel_postrouting"):
        with_ports, without = chain(replace(SETTINGS, shared=(FLANNEL,)), name)[1:]
        assert with_ports.endswith("meta l4proto { tcp, udp, udplite, dccp, sctp } masquerade to :1024-65535")
        assert with_ports.startswith(without.removesuffix("masquerade"))


def test_admins_are_trusted_like_root():
    assert "meta skuid { 0 } accept" in chain(SETTINGS, "to_pods")
    assert "meta skuid { 0, 7, 9 } accept" in chain(replace(SETTINGS, admins=frozenset({9, 7})), "to_pods")


def test_without_flannel_nothing_speaks_of_it():
    assert "flannel" not in base(SETTINGS)


def test_egress_of_flannel_knows_users_by_their_pods_addresses():
    shared = replace(SETTINGS, shared=(FLANNEL,), egress=(Egress(Action.DENY, TO, uid=1000),))
    assert "ip saddr @flannel_user_1000 ip daddr 198.51.100.0/24 " in base(shared)
    found = elements(replace(PLAN, shared={8: SHARED, 9: replace(SHARED, uid=1001)}), STATE, "here", shared)
    assert found["flannel_user_1000"] == {"10.144.1.2"}
    assert found["legs"] == {"il4096 . 10.128.1.1", "iflannel . 10.144.1.1"}
    assert all(f"set {name} {{" in base(shared) for name in found)


def test_private_networks_have_the_same_rules_with_flannel():
    shared = replace(SETTINGS, shared=(FLANNEL,))
    for name in ("input", "from_leg", "own_leg", "host_services", "forward", "from_pods", "output", "to_pods"):
        assert chain(shared, name) == chain(SETTINGS, name)


def test_text_touches_no_table_but_ours():
    text = base(replace(SETTINGS, egress=(Egress(Action.DENY),)))
    assert "flush" not in text
    tables = {line for line in text.splitlines() if "table" in line}
    assert tables == {
        f"{verb}table {family} isthmus{end}"
        for family in ("inet", "bridge")
        for verb, end in (("", ""), ("delete ", ""), ("", " {"))
    }


ENCRYPTED = replace(SETTINGS, wireguard_port=51820)


def test_vxlan_goes_by_wireguard_or_not_at_all_where_nodes_encrypt():
    output, arriving, forward = (chain(ENCRYPTED, name) for name in ("output", "input", "forward"))
    assert 'udp dport 4789 oifname != "iw0" drop' in output
    assert output.index('oifname "iw0" udp dport != 4789 drop') < output.index('oifname "il*" goto to_pods')
    first = arriving.index('udp dport 4789 iifname != "iw0" drop')
    assert first < arriving.index('iifname "lo" accept')
    assert "udp dport 51820 ip saddr != @peers drop" in arriving
    assert {'iifname "iw0" drop', 'oifname "iw0" drop'} <= {*forward}
    assert "udp dport 51820 ip saddr @peers notrack" in chain(ENCRYPTED, "before")


def test_nothing_names_the_device_where_nodes_do_not_encrypt():
    assert "iw0" not in base(SETTINGS)
