"""What flanneld and the plugins are given, and hosts that cannot have Flannel's network."""

import json

import pytest

from isthmus.clients.cni.plugins import parse_list
from isthmus.filters.drivers.flannel.files import network_flannel_config, network_flannel_list, network_flannel_problems
from tests.unit.filters.test_network import facts

RANGE = "10.128.0.0/12"


def test_configuration_says_backend_and_subnets():
    assert network_flannel_config(RANGE, 24, "vxlan") == {
        "Network": RANGE,
        "SubnetLen": 24,
        "EnableNFTables": False,
        "Backend": {"Type": "vxlan", "VNI": 1, "Port": 8472},
    }
    assert network_flannel_config(RANGE, 24, "host-gw")["Backend"] == {"Type": "host-gw"}


def test_list_is_one_for_the_daemon():
    network = parse_list(json.dumps(network_flannel_list()), "list")
    (plugin,) = network.plugins
    assert (network.name, plugin["type"], plugin["delegate"]["bridge"]) == ("flannel", "flannel", "iflannel")
    assert plugin["ipam"]["dataDir"] == "/run/isthmus/cni/networks"


def host(device, address):
    other = {"device": device, "mtu": 1450, "ipv4": {"address": address, "prefix": "24"}}
    return facts() | {"interfaces": ["eth0", device], device.replace(".", "_"): other}


@pytest.mark.parametrize(
    ("device", "address"), [("iflannel", "10.129.3.1"), ("flannel.1", "10.129.3.0"), ("eth1", "10.9.0.1")]
)
def test_host_with_its_own_interfaces_has_no_problem(device, address):
    assert network_flannel_problems(host(device, address), "10.231.0.10", RANGE) == []


def test_site_network_within_the_range_is_refused():
    (problem,) = network_flannel_problems(host("eth1", "10.130.0.1"), "10.231.0.10", RANGE)
    assert problem == "eth1 (10.130.0.1) lies in network_flannel_range 10.128.0.0/12; choose another range"


def test_member_on_another_link_is_refused_where_all_must_share_one():
    linked = ["10.231.0.10", "10.231.0.21", "10.232.0.21"]
    (problem,) = network_flannel_problems(facts(), "10.231.0.10", RANGE, linked)
    assert problem == (
        "10.232.0.21 is not on the link 10.231.0.0/24 of 10.231.0.10; set network_flannel_backend to vxlan"
    )
