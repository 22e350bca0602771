"""A test bed's addresses follow from its name, and stay what they are."""

from __future__ import annotations

import pytest

from isthmus.filters.errors import InputError
from isthmus.filters.local.subnet import local_address, local_keys, local_mac, local_subnet


@pytest.mark.parametrize(
    ("name", "subnet"),
    [("isthmus", "10.231.0.0/24"), ("xyz", "10.231.240.0/24"), ("mj", "10.231.147.0/24")],
)
def test_subnet_of_a_name_never_changes(name: str, subnet: str) -> None:
    assert local_subnet(name) == subnet


def test_subnet_follows_the_base() -> None:
    assert local_subnet("isthmus", "172.20.0.0/16") == "172.20.0.0/24"


def test_subnet_of_another_name_is_never_the_default_one() -> None:
    octets = {int(local_subnet(f"n{i}").split(".")[2]) for i in range(2000)}
    assert min(octets) >= 1
    assert max(octets) <= 254
    assert len(octets) > 200


@pytest.mark.parametrize(
    ("name", "base", "message"),
    [
        ("", "10.231.0.0/16", "'' is no name for a test bed.*lower case"),
        ("Upper", "10.231.0.0/16", "is no name"),
        ("a_b", "10.231.0.0/16", "is no name"),
        ("a-", "10.231.0.0/16", "is no name"),
        ("a", "10.231.0.0/24", "is a /24; give a /16"),
        ("a", "10.231.0.1/16", "is no IPv4 network"),
        ("a", "ten", "is no IPv4 network"),
        ("a", "fd00::/16", "is no IPv4 network"),
    ],
)
def test_subnet_refuses(name: str, base: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        local_subnet(name, base)


@pytest.mark.parametrize(
    ("subnet", "index", "address"),
    [
        ("10.231.0.0/24", 2, "10.231.0.2"),
        ("10.231.7.0/24", 254, "10.231.7.254"),
        ("10.9.0.0/22", 300, "10.9.1.44"),
    ],
)
def test_address(subnet: str, index: int, address: str) -> None:
    assert local_address(subnet, index) == address


@pytest.mark.parametrize("index", [-1, 0, 1, 255, 256, True, "11", None, 2.5])
def test_address_refuses_an_index_out_of_range(index: int) -> None:
    with pytest.raises(InputError, match=r"provider_local_index is .*whole number from 2 to 254"):
        local_address("10.231.0.0/24", index)


def test_address_refuses_what_is_no_network() -> None:
    with pytest.raises(InputError, match="is no IPv4 network"):
        local_address("10.231.0.11/24", 11)


@pytest.mark.parametrize(
    ("address", "mac"),
    [("10.231.0.11", "02:49:0a:e7:00:0b"), ("255.255.255.255", "02:49:ff:ff:ff:ff")],
)
def test_mac(address: str, mac: str) -> None:
    assert local_mac(address) == mac


@pytest.mark.parametrize("address", ["", "10.231.0", "10.231.0.256", "fd00::1", "ctl"])
def test_mac_refuses_what_is_no_address(address: str) -> None:
    with pytest.raises(InputError, match="is no IPv4 address"):
        local_mac(address)


def test_keys_are_the_deployers_and_the_nodes():
    assert local_keys(["c1"], "/state/ssh", "demo") == {
        "/state/ssh/id_ed25519": "id_ed25519 of demo",
        "/state/ssh/c1": "c1 of demo",
    }
