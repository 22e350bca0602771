"""A range of IPv6 that cannot work, and hosts that cannot have any, are refused before any change."""

import pytest

from isthmus.filters.network.ipv6 import ipv6_problems, network_ipv6_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

RANGE = "fd12:3456:789a::/48"
BRIDGE = {"type": "bridge", "ipam": {"ranges": [[{"subnet": "10.9.0.0/16"}], [{"subnet": "fd12:3456:789a:1::/64"}]]}}


def problems(**variables):
    hostvars = {"ctl": {"base_address": "192.0.2.1", "network_pod_range": "10.64.0.0/11", **variables}}
    return list(ipv6_problems(Site(hostvars, {"all": ["ctl"], "controller": ["ctl"]}, {}, Sources([]))))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"network_ipv6_range": ""},
        {"network_mtu": 600},
        {"network_ipv6_range": RANGE},
        {"network_ipv6_range": "fd12:3456:789a:1::/64", "network_mtu": 1280, "ansible_host": "2001:db8::1"},
        {"network_ipv6_range": "fd12:3456:789a::/96", "apptainer_networks": {"other": [{"type": "bridge"}]}},
    ],
)
def test_right_range_has_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("range", "more", "what", "remedy"),
    [
        ("10.0.0.0/8", {}, "is no IPv6 network", "as fd12:3456:789a::/48"),
        ("fd12:3456:789a::1/48", {}, "is no IPv6 network", "as fd12:3456:789a::/48"),
        ("2001:db8::/48", {}, "is not within fd00::/8", "ten hexadecimal digits"),
        ("fe80::/64", {}, "is not within fd00::/8", "ten hexadecimal digits"),
        ("fd12:3456:789a::/97", {}, "no prefix of 48 to 96 bits", "use a /48 or /64"),
        ("fd00::/8", {}, "no prefix of 48 to 96 bits", "use a /48 or /64"),
        (RANGE, {"network_mtu": 1279}, "network_mtu 1279 is too little", "raise it to 1280"),
        (RANGE, {"ansible_host": "fd12:3456:789a:9::7"}, "overlaps ctl (fd12:3456:789a:9::7)", "choose a range"),
        (
            RANGE,
            {"apptainer_networks": {"own": [BRIDGE]}},
            "overlaps network own of apptainer_networks (fd12:3456:789a:1::/64)",
            "choose a range",
        ),
    ],
)
def test_wrong_range_is_reported_with_the_remedy(range, more, what, remedy):
    (problem,) = problems(network_ipv6_range=range, **more)
    assert what in problem
    assert remedy in problem


def facts(six=(), mtu=1500, device="eth0"):
    own = {"device": "eth0", "mtu": mtu, "ipv4": {"address": "192.0.2.1", "prefix": "24"}}
    return {"interfaces": ["eth0", "other"], "eth0": own, "other": {"device": device, "ipv6": list(six)}}


INSIDE = {"address": "fd12:3456:789a:5::1", "prefix": "64", "scope": "global"}
LINK = {"address": "fe80::1", "prefix": "64", "scope": "link"}


@pytest.mark.parametrize(
    ("found", "has_ipv6", "encrypts", "said"),
    [
        (facts([LINK]), True, False, []),
        (facts([INSIDE], device="il4096"), True, False, []),
        (facts([INSIDE], device="br0"), True, False, ["br0 (fd12:3456:789a:5::1) lies in network_ipv6_range"]),
        (facts(), False, False, ["no IPv6; boot it without ipv6.disable=1, or unset network_ipv6_range"]),
        (facts(mtu=1330), True, False, []),
        (facts(mtu=1329), True, False, ["eth0 carries 1329 bytes, 1279 for a pod, and IPv6 needs 1280"]),
        (facts(mtu=1330), True, True, ["1220 for a pod"]),
        (facts([INSIDE], device="br0"), False, False, ["br0", "no IPv6"]),
    ],
)
def test_host_whose_pods_cannot_have_it_is_refused_with_the_remedy(found, has_ipv6, encrypts, said):
    problems = network_ipv6_problems(found, "192.0.2.1", RANGE, has_ipv6, encrypts)
    assert len(problems) == len(said)
    assert all(words in problem for words, problem in zip(said, problems, strict=True))


def test_without_a_range_nothing_is_asked_of_a_host():
    assert network_ipv6_problems(facts([INSIDE], mtu=600, device="br0"), "192.0.2.1", "", has_ipv6=False) == []
