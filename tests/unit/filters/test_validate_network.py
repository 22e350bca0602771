"""What is wrong with pod networks is reported before any change."""

import pytest

from isthmus.filters.validate.layers.network import network_problems
from isthmus.filters.validate.shapes import shape_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

USERS = [{"name": "alice"}, {"name": "bob"}]


def site(**variables):
    hostvars = {
        "ctl": {
            "base_address": "10.231.0.10",
            "base_users": USERS,
            "slurm_partitions": [{"name": "batch"}],
            **variables,
        },
        "c1": {"base_address": "10.231.0.21"},
    }
    return Site(hostvars, {"all": ["ctl", "c1"], "controller": ["ctl"]}, {}, Sources([]))


def problems(**variables):
    return list(network_problems(site(**variables)))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"network_pod_range": "10.64.0.0/10", "network_block_prefix": 24},
        {"network_pod_range": "10.64.0.0/23", "network_block_prefix": 24},
        {"network_vni_first": 1, "network_vni_last": 2},
        {"network_mtu": 0},
        {"network_mtu": 1400},
        {"network_partition_drivers": {"batch": "private"}, "network_user_drivers": {"bob": "none"}},
        {"network_egress": [{"action": "deny", "to": "192.0.2.0/24", "protocol": "tcp", "ports": [25]}]},
        {"network_admin_users": ["alice"], "network_dns_upstreams": ["192.0.2.53"]},
    ],
)
def test_right_network_has_no_problem(variables):
    assert list(shape_problems(site(**variables))) == problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"network_pod_range": "10.64.0.1/10"}, "network_pod_range 10.64.0.1/10 is no IPv4 network"),
        ({"network_pod_range": "fd00::/48"}, "network_pod_range fd00::/48 is no IPv4 network"),
        ({"network_pod_range": "10.231.0.16/28"}, "contains c1 (10.231.0.21)"),
        ({"network_pod_range": "10.64.0.0/24", "network_block_prefix": 24}, "has 1 blocks of /24 for 2 users"),
        ({"network_pod_range": "10.64.0.0/16", "network_block_prefix": 15}, "15 is not within 16 and 29"),
        ({"network_pod_range": "10.64.0.0/16", "network_block_prefix": 30}, "30 is not within 16 and 29"),
        ({"network_vni_first": 5, "network_vni_last": 5}, "network_vni_first 5 to network_vni_last 5"),
        ({"network_vni_first": 0, "network_vni_last": 9}, "network_vni_first 0 to network_vni_last 9"),
        ({"network_vni_first": 1, "network_vni_last": 2**24}, "to network_vni_last 16777216"),
        ({"network_mtu": 500}, "network_mtu 500 cannot work"),
        ({"network_mtu": 65486}, "network_mtu 65486 cannot work"),
        ({"network_partition_drivers": {"bach": "private"}}, "'bach'; did you mean 'batch'?"),
        ({"network_user_drivers": {"alice": "privat"}}, "'privat'; did you mean 'private'?"),
        ({"network_admin_users": ["bop"]}, "'bop'; did you mean 'bob'?"),
        ({"network_egress": [{"action": "deny", "users": ["alise"]}]}, "'alise'; did you mean 'alice'?"),
        ({"network_egress": [{"action": "deny", "to": "192.0.2.1/24"}]}, "192.0.2.1/24 is no IPv4 network"),
        ({"network_egress": [{"action": "deny", "ports": [25]}]}, "has ports and no protocol"),
        ({"network_dns_upstreams": ["dns.example"]}, "dns.example is no IPv4 address"),
    ],
)
def test_wrong_network_is_reported(variables, message):
    (problem,) = problems(**variables)
    assert message in problem


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"network_admin_users": 5}, "network_admin_users is a whole number; write a list"),
        ({"network_egress": ["deny"]}, "network_egress[0] is text; write a dict"),
        ({"network_egress": [{"users": "bob"}]}, "network_egress[0].users is text; write a list"),
        ({"network_host_ports": {"port": 5}}, "network_host_ports is a dict; write a list"),
        ({"network_user_drivers": ["bob"]}, "network_user_drivers is a list; write a dict"),
        ({"network_dns_upstreams": "192.0.2.53"}, "network_dns_upstreams is text; write a list"),
    ],
)
def test_misshaped_network_is_reported(variables, message):
    (problem,) = shape_problems(site(**variables))
    assert message in problem


@pytest.mark.parametrize(
    ("names", "reported"),
    [
        (["a_b", "a-b"], "users a_b and a-b would both be a-b in DNS"),
        (["alice", "alice_"], "users alice and alice_ would both be alice"),
        (["alice", "bob"], ""),
        (["alice", "alice"], ""),
    ],
)
def test_users_of_one_dns_label_are_refused(names, reported):
    found = problems(base_users=[{"name": name} for name in names])
    assert [reported in each for each in found] == [True] * bool(reported)
