"""What is wrong with Flannel's network is reported before any change."""

import pytest

from isthmus.filters.validate.layers.network import network_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources
from tests.repo import tree

SPECS = {"network": tree.load(tree.ROOT / "roles/network/meta/argument_specs.yml")}


def problems(**variables):
    hostvars = {
        "ctl": {"base_address": "10.231.0.10", "network_drivers": ["private", "flannel"], **variables},
        "c1": {"base_address": "10.231.0.21"},
    }
    groups = {"all": ["ctl", "c1"], "controller": ["ctl"], "network": ["ctl", "c1"]}
    return list(network_problems(Site(hostvars, groups, SPECS, Sources([]))))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"network_default_driver": "flannel"},
        {"network_drivers": ["private"], "network_flannel_range": "10.231.0.0/16"},
        {"network_flannel_range": "172.30.0.0/24", "network_flannel_prefix": 26},
        {"network_pod_range": "10.128.0.0/12", "network_flannel_range": "10.64.0.0/10"},
    ],
)
def test_right_flannel_has_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"network_drivers": ["flannel"]}, "network_drivers lacks private"),
        ({"network_drivers": ["private"], "network_default_driver": "flannel"}, "driver in network_default_driver"),
        ({"network_flannel_range": "10.128.0.1/12"}, "network_flannel_range 10.128.0.1/12 is no IPv4 network"),
        ({"network_flannel_range": "10.64.0.0/12"}, "overlaps network_pod_range (10.64.0.0/11)"),
        ({"network_pod_range": "10.128.0.0/10"}, "network_flannel_range 10.128.0.0/12 overlaps network_pod_range"),
        ({"network_flannel_range": "10.231.0.16/28", "network_flannel_prefix": 30}, "overlaps c1 (10.231.0.21)"),
        ({"network_dns_upstreams": ["10.130.0.1"]}, "overlaps a server of network_dns_upstreams (10.130.0.1)"),
        (
            {"apptainer_networks": {"own": [{"type": "bridge", "ipam": {"subnet": "10.128.3.0/24"}}]}},
            "overlaps network own of apptainer_networks (10.128.3.0/24)",
        ),
        ({"network_flannel_prefix": 13}, "network_flannel_prefix 13 is not within 14 and 30"),
        ({"network_flannel_prefix": 31}, "network_flannel_prefix 31 is not within 14 and 30"),
    ],
)
def test_wrong_flannel_is_reported(variables, message):
    (problem,) = problems(**variables)
    assert message in problem


def test_range_with_too_few_subnets_is_reported():
    hosts = [f"c{number}" for number in range(4)]
    reported = {"network_drivers": ["private", "flannel"], "network_flannel_range": "10.128.0.0/22"}
    site = Site({host: reported for host in hosts}, {"all": hosts, "network": hosts}, SPECS, Sources([]))
    (problem,) = network_problems(site)
    assert "has 3 subnets of /24 for 4 hosts" in problem
