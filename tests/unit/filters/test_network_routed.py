"""A routed network that cannot work is refused before any change."""

import pytest

from isthmus.filters.drivers.routed.problems import network_routed_problems, network_routed_segment, problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources


def facts(prefix=24):
    ipv4 = {"address": "192.0.2.1", "prefix": str(prefix)}
    return {
        "interfaces": ["eth0", "ir7"],
        "eth0": {"device": "eth0", "ipv4": ipv4},
        "ir7": {"device": "ir7", "ipv4": {"address": "10.160.1.1", "prefix": "32"}},
    }


def test_segment_is_that_of_the_hosts_own_address():
    assert network_routed_segment(facts(), "192.0.2.1") == "192.0.2.0/24"
    assert network_routed_segment(facts(22), "192.0.2.1") == "192.0.0.0/22"
    assert network_routed_segment({}, "192.0.2.1") == "192.0.2.1/32"


@pytest.mark.parametrize(
    ("pods", "members", "prefix", "said"),
    [
        ("10.160.0.0/12", ["192.0.2.1", "192.0.2.254"], 24, []),
        ("10.160.0.0/12", ["192.0.2.1", "198.51.100.7"], 24, ["198.51.100.7 is not on the segment 192.0.2.0/24"]),
        ("10.160.0.0/20", [], 24, []),
        ("10.160.0.0/21", [], 24, ["too small for the segment 192.0.2.0/24; use a prefix of at most /20"]),
        ("192.0.0.0/12", [], 24, ["eth0 (192.0.2.1) lies in network_routed_range"]),
    ],
)
def test_host_that_cannot_be_a_member_is_refused_with_the_remedy(pods, members, prefix, said):
    found = network_routed_problems(facts(prefix), "192.0.2.1", pods, members)
    assert len(found) == len(said)
    assert all(words in problem for words, problem in zip(said, found, strict=True))


def site(**variables):
    ranges = {"network_pod_range": "10.64.0.0/11", "network_flannel_range": "10.128.0.0/12"}
    ranges["network_drivers"] = ["private", "flannel", "routed"]
    hostvars = {"ctl": {"base_address": "192.0.2.1", **ranges, **variables}}
    return Site(hostvars, {"all": ["ctl"], "controller": ["ctl"]}, {}, Sources([]))


@pytest.mark.parametrize(
    ("range", "said"),
    [
        ("10.160.0.0/12", ""),
        ("10.160.0.1/12", "is no IPv4 network"),
        ("10.80.0.0/12", "overlaps network_pod_range"),
        ("10.128.0.0/16", "overlaps network_flannel_range"),
        ("192.0.0.0/12", "overlaps ctl (192.0.2.1)"),
    ],
)
def test_range_that_overlaps_is_reported(range, said):
    found = list(problems(site(network_routed_range=range)))
    assert bool(found) == bool(said)
    assert all(said in problem for problem in found)
