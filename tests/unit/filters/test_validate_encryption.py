"""Encryption between nodes that would leave packets in the clear is refused before any change."""

import pytest

from isthmus.filters.network.encryption import encryption_problems, network_wireguard_problems
from isthmus.filters.network.layer import network_host_problems
from isthmus.filters.validate.site import Site
from isthmus.filters.validate.sources import Sources

ON = {"network_encryption": "wireguard"}
GRANTS = [{"prefix": prefix, "access": "readwrite"} for prefix in ("network/", "wireguard/")]
FACTS = {
    "interfaces": ["eth0"],
    "eth0": {"device": "eth0", "mtu": 1500, "ipv4": {"address": "192.0.2.1", "prefix": 24}},
}


def problems(groups=(), **variables):
    hostvars = {"ctl": {"base_address": "192.0.2.1", "network_drivers": ["private"], **variables}}
    named = {"all": ["ctl"], "controller": ["ctl"], **{name: ["ctl"] for name in groups}}
    return list(encryption_problems(Site(hostvars, named, {}, Sources([]))))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        ON,
        {"network_drivers": ["private", "flannel"], "join_service": True},
        {**ON, "network_wireguard_port": 1, "network_wireguard_key_days": 0},
        {**ON, "etcd_users": [{"name": "networkd", "grants": GRANTS}]},
        {"etcd_users": [{"name": "networkd", "grants": GRANTS[:1]}]},
    ],
)
def test_right_encryption_has_no_problem(variables):
    assert problems(**variables) == []


@pytest.mark.parametrize(
    ("variables", "what", "remedy"),
    [
        (
            {**ON, "network_drivers": ["private", "flannel"]},
            "pods of flannel would send in the clear",
            "take flannel out",
        ),
        ({**ON, "join_service": True}, "no certificate with their name", "playbooks/add_nodes.yml"),
        ({**ON, "etcd_users": [{"name": "networkd", "grants": GRANTS[:1]}]}, "publish keys", "prefix: wireguard/"),
        ({"network_wireguard_port": 4789}, "4789 is VXLAN's", "use another one"),
        ({"network_wireguard_port": 70000}, "70000 is no port", "use another one"),
        ({"network_wireguard_key_days": -1}, "network_wireguard_key_days is -1", "0 for never"),
    ],
)
def test_wrong_encryption_is_reported_with_the_remedy(variables, what, remedy):
    (problem,) = problems(**variables)
    assert what in problem
    assert remedy in problem


def test_nodes_that_join_by_themselves_are_reported():
    (problem,) = problems(["joining"], **ON)
    assert "join by themselves" in problem


@pytest.mark.parametrize(
    ("found", "program", "said"),
    [
        ({}, "kernel", ""),
        ({"kernel": True, "error": "", "tun": False}, "kernel", ""),
        ({"kernel": False, "error": "Unknown device type.", "tun": True}, "wireguard-go", ""),
        (
            {"kernel": False, "error": "Unknown device type.", "tun": True},
            "kernel",
            "no WireGuard (Unknown dev",
        ),
        ({"kernel": False, "error": "", "tun": True}, "kernel", "network_wireguard_program: wireguard-go"),
        ({"kernel": False, "error": "", "tun": False}, "wireguard-go", "load the module tun"),
    ],
)
def test_host_that_cannot_encrypt_is_refused_with_the_remedy(found, program, said):
    refused = network_wireguard_problems(found, program)
    assert bool(refused) == bool(said)
    assert all(said in each for each in refused)


@pytest.mark.parametrize(("mtu", "encrypts", "fits"), [(1450, False, True), (1450, True, False), (1390, True, True)])
def test_packets_of_pods_fit_the_hosts_interface_with_what_encryption_adds(mtu, encrypts, fits):
    assert (network_host_problems(FACTS, "192.0.2.1", "10.64.0.0/16", mtu, encrypts) == []) is fits
